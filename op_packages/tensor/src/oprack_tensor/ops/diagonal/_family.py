"""Sizes of diagonals."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

OFFSET = Attr(0, "Which diagonal: 0 the main one, positive above it.")


def diagonal_size(rows: int, columns: int, offset: int) -> int:
    """Number of elements of a diagonal; -1 where a size is not known."""
    if min(rows, columns) < 0:
        return -1
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def two_axes(ctx: InferShapeContext, slot: str, first: str, second: str) -> tuple[int, int]:
    """Two different dims of an input, counted from the front, by the attributes that name them."""
    dims = ctx.dim(slot)
    ctx.require(len(dims) >= 2, f"{slot} has shape {list(dims)}; expected rank 2 or more")
    one, two = ctx.axis(slot, first), ctx.axis(slot, second)
    ctx.require(one != two, f"{first} and {second} both name dim {one} of {slot}; expected two dims")
    return one, two


class FillsDiagonal(OpDef):
    """Out is X with other values on a diagonal."""

    X = Input("Tensor of rank 2 or more.")
    Out = Output("Shape and LoD of X.")


class FillsDiagonalGrad(GradOpDef, grads_of="X", like="Out@GRAD"):
    """X@GRAD is Out@GRAD with zeros on that diagonal."""
