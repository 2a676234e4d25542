"""Kernels of complex and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.complex._family import of_parts


@kernel("complex", place=BOTH, dtypes=FLOATS)
def complex_of_parts(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X + iY."""
    return of_parts(X, Y, xp)


@kernel("complex_grad", place=BOTH, dtypes=FLOATS)
def complex_grad(
    X: ShapeOnly, Y: ShapeOnly, Out_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """Both parts of Out@GRAD, summed where X or Y was broadcast."""
    x, y = align(X, Y, -1)
    dx = sum_to(Out_grad.real, x, X).copy() if ctx.wants("X@GRAD") else None
    return dx, sum_to(Out_grad.imag, y, Y).copy() if ctx.wants("Y@GRAD") else None
