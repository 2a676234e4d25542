"""Kernels of spectral_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH


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
