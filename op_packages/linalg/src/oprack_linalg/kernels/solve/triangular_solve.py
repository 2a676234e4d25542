"""Kernels of triangular_solve and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, reduced_to, triangle
from oprack_linalg.kernels._triangular import solve_triangle


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
