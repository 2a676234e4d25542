"""Kernels of cholesky_solve and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, reduced_to, triangle
from oprack_linalg.kernels._triangular import solve_triangle


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
