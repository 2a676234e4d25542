"""Kernels of products and powers of matrices."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, singular


# bilinear_tensor_product ----------------------------------------------------------------------------------------------
@kernel("bilinear_tensor_product", place=BOTH, dtypes=FLOATS)
def bilinear_tensor_product(X: Array, Y: Array, Weight: Array, Bias: Array | None = None, *, xp: ArrayModule) -> Array:
    """The products of X with all matrices of Weight, then their products with Y."""
    out = ((X @ Weight) * Y).sum(axis=-1).swapaxes(0, 1)
    return xp.ascontiguousarray(out) if Bias is None else out + Bias


@kernel("bilinear_tensor_product_grad", place=BOTH, dtypes=FLOATS)
def bilinear_tensor_product_grad(
    X: Array, Y: Array, Weight: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array | None]:
    """One product for each input."""
    found: dict[str, Array | None] = {}
    gradient = Out_grad.swapaxes(0, 1)[..., None]
    if ctx.wants("X@GRAD"):
        found["X@GRAD"] = (gradient * (Y @ Weight.swapaxes(-1, -2))).sum(axis=0)
    if ctx.wants("Y@GRAD"):
        found["Y@GRAD"] = (gradient * (X @ Weight)).sum(axis=0)
    if ctx.wants("Weight@GRAD"):
        found["Weight@GRAD"] = (gradient * X).swapaxes(-1, -2) @ Y
    if ctx.wants("Bias@GRAD"):
        found["Bias@GRAD"] = Out_grad.sum(axis=0, keepdims=True)
    return found


# matrix_power ---------------------------------------------------------------------------------------------------------
@kernel("matrix_power", place=BOTH, dtypes=REAL_AND_COMPLEX)
def matrix_power(X: Array, *, n: int, xp: ArrayModule) -> Array:
    """By repeated squaring."""
    with singular("matrix_power", "X"):
        out = xp.linalg.matrix_power(X, n)
    # the first power is X itself
    return out.copy() if n == 1 else out


@kernel("matrix_power_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def matrix_power_grad(X: Array, Out_grad: Array, *, n: int, xp: ArrayModule) -> Array:
    """The sum over all positions of the factor, by repeated doubling.

    With T = base^H and G = Out@GRAD, S(m) = sum of T^i G T^(m-1-i) for i below m, and S(a + b) = S(a) T^b + T^a S(b).
    """
    if n == 0:
        return xp.zeros_like(X)
    base = X
    if n < 0:
        with singular("matrix_power_grad", "X"):
            base = xp.linalg.inv(X)
    turned = power = adjoint(base)
    part, left, done = Out_grad, abs(n), None
    while True:
        if left & 1:
            done = (power, part) if done is None else (done[0] @ power, done[1] @ power + done[0] @ part)
        left >>= 1
        if not left:
            break
        part, power = part @ power + power @ part, power @ power
    assert done is not None  # |n| is above 0, so one of its bits is set
    total = done[1]
    return -(turned @ total @ turned) if n < 0 else total.copy() if total is Out_grad else total


# spectral_norm --------------------------------------------------------------------------------------------------------
def _matrix(Weight: Array, dim: int, xp: ArrayModule) -> Array:
    """Weight as a matrix whose rows are dim `dim`."""
    return xp.moveaxis(Weight, dim, 0).reshape(Weight.shape[dim], -1)


def _normal(x: Array, eps: float, xp: ArrayModule) -> Array:
    return x / (xp.sqrt((x * x).sum()) + x.dtype.type(eps))


def _through_normal(x: Array, gradient: Array, eps: float, xp: ArrayModule) -> Array:
    """Gradient of x for the gradient of _normal(x)."""
    norm = xp.sqrt((x * x).sum())
    whole = norm + x.dtype.type(eps)
    return gradient / whole - x * ((x * gradient).sum() / (norm * whole * whole))


@kernel("spectral_norm", place=BOTH, dtypes=FLOATS)
def spectral_norm(
    Weight: Array, U: Array, V: Array, *, dim: int, power_iters: int, eps: float, xp: ArrayModule
) -> Array:
    """Weight by its greatest singular value."""
    matrix, u, v = _matrix(Weight, dim, xp), U, V
    for _ in range(power_iters):
        v = _normal(matrix.T @ u, eps, xp)
        u = _normal(matrix @ v, eps, xp)
    return Weight / (u * (matrix @ v)).sum()


@kernel("spectral_norm_grad", place=BOTH, dtypes=FLOATS)
def spectral_norm_grad(
    Weight: Array, U: Array, V: Array, Out_grad: Array, *, dim: int, power_iters: int, eps: float, xp: ArrayModule
) -> Array:
    """The gradient with u and v held constant, and what flows through each round, the last one first."""
    matrix, gradient = _matrix(Weight, dim, xp), _matrix(Out_grad, dim, xp)
    rounds, u, v = [], U, V
    for _ in range(power_iters):
        before = u
        by_v = matrix.T @ u
        v = _normal(by_v, eps, xp)
        by_u = matrix @ v
        u = _normal(by_u, eps, xp)
        rounds.append((before, by_v, v, by_u))
    sigma = (u * (matrix @ v)).sum()
    by_sigma = -(gradient * matrix).sum() / (sigma * sigma)
    out = gradient / sigma + by_sigma * u[:, None] * v
    grad_u, grad_v = by_sigma * (matrix @ v), by_sigma * (matrix.T @ u)
    for before, by_v, v, by_u in reversed(rounds):
        step = _through_normal(by_u, grad_u, eps, xp)
        out = out + step[:, None] * v
        step = _through_normal(by_v, grad_v + matrix.T @ step, eps, xp)
        out = out + before[:, None] * step
        grad_u, grad_v = matrix @ step, 0
    others = [n for i, n in enumerate(Weight.shape) if i != dim % Weight.ndim]
    return xp.moveaxis(out.reshape(Weight.shape[dim], *others), 0, dim)
