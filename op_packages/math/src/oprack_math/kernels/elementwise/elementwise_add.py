"""Kernels of elementwise_add, with gradients to third order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._broadcast import align, broadcasting, sum_to, usable
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.elementwise._family import combine_second


@kernel("elementwise_add", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("add"))
def elementwise_add(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """X + Y."""
    x, y = align(X, Y, axis, "elementwise_add")
    return xp.add(x, y, out=usable(out, x, y))


@kernel("elementwise_add_grad", place=BOTH, dtypes=NUMBERS, view=True)
def elementwise_add_grad(
    Out_grad: Array, X: ShapeOnly, Y: ShapeOnly, *, axis: int, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """Out@GRAD for both, summed over broadcast dims; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_add_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    if not ctx.wants("Y@GRAD"):
        return dx, None
    dy = sum_to(Out_grad, y, Y)
    # A copy instead of a view, so that X@GRAD and Y@GRAD do not share memory.
    return dx, dy.copy() if Out_grad.shape == y.shape else dy


@kernel("elementwise_add_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_add_grad_grad(
    Y: ShapeOnly, DOut: ShapeOnly, DDX: Array | None = None, DDY: Array | None = None, *, axis: int, xp: ArrayModule
) -> Array:
    """DDX + DDY in the shape of DOut."""
    return combine_second(DDX, DDY, DOut, Y, axis, xp, xp.add)


@kernel("elementwise_add_triple_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_add_triple_grad(
    D_DDOut: Array, DDX: ShapeOnly | None = None, DDY: ShapeOnly | None = None, *, axis: int, ctx: KernelContext
) -> dict[str, Array | None]:
    """D_DDOut for both, summed where they were broadcast."""

    def back(slot: str, operand: ShapeOnly | None) -> Array | None:
        if operand is None or not ctx.wants(slot):
            return None
        x = align(operand, D_DDOut, axis)[0]
        result = sum_to(D_DDOut, x, operand)
        return result.copy() if D_DDOut.shape == x.shape else result

    return {"D_DDX": back("D_DDX", DDX), "D_DDY": back("D_DDY", DDY)}
