"""Kernels of systems of equations."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels import _matrices
from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, reduced_to, refusing, singular, triangle
from oprack_linalg.kernels._triangular import solve_triangle


# cholesky_solve -------------------------------------------------------------------------------------------------------
def _solve(op_type: str, factor: Array, right: Array, upper: bool, xp: ArrayModule) -> Array:
    """The solution with the product of both triangles."""
    half = solve_triangle(op_type, "Y", factor, right, upper=upper, transpose=upper, xp=xp)
    return solve_triangle(op_type, "Y", factor, half, upper=upper, transpose=not upper, xp=xp)


@kernel("cholesky_solve", place=BOTH, dtypes=FLOATS)
def cholesky_solve(X: Array, Y: Array, *, upper: bool, xp: ArrayModule) -> Array:
    """Forward and back substitution."""
    return _solve("cholesky_solve", Y, X, upper, xp)


@kernel("cholesky_solve_grad", place=BOTH, dtypes=FLOATS)
def cholesky_solve_grad(
    X: Array, Y: Array, Out: Array, Out_grad: Array, *, upper: bool, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array | None]:
    """The solution for Out@GRAD, and through the product of the triangles that of Y."""
    by_x = _solve("cholesky_solve_grad", Y, Out_grad, upper, xp)
    by_y = None
    if ctx.wants("Y@GRAD"):
        by_product = -by_x @ Out.swapaxes(-1, -2)
        both, factor = by_product + by_product.swapaxes(-1, -2), triangle(Y, upper, False, xp)
        by_y = triangle(reduced_to(factor @ both if upper else both @ factor, Y.shape), upper, False, xp)
    return reduced_to(by_x, X.shape), by_y


# inverse --------------------------------------------------------------------------------------------------------------
@kernel("inverse", place=BOTH, dtypes=REAL_AND_COMPLEX)
def inverse(Input: Array, *, xp: ArrayModule) -> Array:
    """The inverse of each matrix."""
    with singular("inverse", "Input"):
        return xp.linalg.inv(Input)


@kernel("inverse_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def inverse_grad(Output: Array, Output_grad: Array) -> Array:
    """-Output^H Output@GRAD Output^H."""
    turned = adjoint(Output)
    return -(turned @ Output_grad @ turned)


# lstsq ----------------------------------------------------------------------------------------------------------------
@kernel("lstsq", place=BOTH, dtypes=FLOATS)
def lstsq(X: Array, Y: Array, *, rcond: float, driver: str, xp: ArrayModule) -> tuple[Array, Array, Array, Array]:
    """By singular values, of which those near zero are left out."""
    rows, columns = X.shape[-2:]
    with refusing("lstsq", "X", "holds NaN or infinities", "expected finite numbers"):
        u, s, vh = xp.linalg.svd(X, full_matrices=False)
    greatest = s[..., :1]
    # the precision of the dtype bounds what can be told from zero, whatever rcond says
    least = greatest * max(rcond, xp.finfo(X.dtype).eps)
    kept = s > least
    weight = xp.where(kept, 1 / xp.where(kept, s, 1), X.dtype.type(0))
    solution = vh.swapaxes(-1, -2) @ (weight[..., None] * (u.swapaxes(-1, -2) @ Y))
    nothing = xp.empty(0, X.dtype)
    residuals = xp.square(Y - X @ solution).sum(axis=-2) if rows > columns else nothing
    rank = xp.empty(0, xp.int32) if driver == "gels" else kept.sum(axis=-1, dtype=xp.int32)
    return solution, residuals, rank, s if driver in ("gelsd", "gelss") else nothing


# solve ----------------------------------------------------------------------------------------------------------------
def _is_vectors(X: Array, Y: Array) -> bool:
    return Y.ndim == 1 or Y.shape == X.shape[:-1]


@kernel("solve", place=BOTH, dtypes=REAL_AND_COMPLEX)
def solve(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """LAPACK's gesv."""
    if _is_vectors(X, Y):
        return _matrices.solve("solve", "X", X, Y[..., None], xp)[..., 0]
    return _matrices.solve("solve", "X", X, Y, xp)


@kernel("solve_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def solve_grad(
    X: Array, Y: Array, Out: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array]:
    """X^-H Out@GRAD, and minus that times Out^H."""
    shape = Y.shape
    if _is_vectors(X, Y):
        shape, Out, Out_grad = (*shape, 1), Out[..., None], Out_grad[..., None]
    by_y = _matrices.solve("solve_grad", "X", adjoint(X), Out_grad, xp)
    by_x = reduced_to(-by_y @ adjoint(Out), X.shape) if ctx.wants("X@GRAD") else None
    return by_x, reduced_to(by_y, shape).reshape(Y.shape)


# triangular_solve -----------------------------------------------------------------------------------------------------
@kernel("triangular_solve", place=BOTH, dtypes=FLOATS)
def triangular_solve(
    X: Array, Y: Array, *, upper: bool, transpose: bool, unitriangular: bool, xp: ArrayModule
) -> Array:
    """Back substitution."""
    flags = {"upper": upper, "transpose": transpose, "unit": unitriangular}
    return solve_triangle("triangular_solve", "X", X, Y, **flags, xp=xp)


@kernel("triangular_solve_grad", place=BOTH, dtypes=FLOATS)
def triangular_solve_grad(
    X: Array,
    Y: Array,
    Out: Array,
    Out_grad: Array,
    *,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array]:
    """The solution with the transpose, and minus that times Out^T within the triangle that was read."""
    flags = {"upper": upper, "transpose": not transpose, "unit": unitriangular}
    by_y = solve_triangle("triangular_solve_grad", "X", X, Out_grad, **flags, xp=xp)
    by_x = None
    if ctx.wants("X@GRAD"):
        left, right = (Out, by_y) if transpose else (by_y, Out)
        by_x = triangle(reduced_to(-left @ right.swapaxes(-1, -2), X.shape), upper, unitriangular, xp)
    return by_x, reduced_to(by_y, Y.shape)
