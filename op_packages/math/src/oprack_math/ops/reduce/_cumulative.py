"""What cumsum and logcumsumexp share: one result for each element of a dim, or of all elements as one dim."""

from __future__ import annotations

import math

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output


class Cumulative(OpDef):
    """A sum of what came so far along a dim."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X; with flatten one dim.")
    axis = Attr(-1, "Dim along which to add up.")
    flatten = Attr(False, "Add up over all elements, as one dim.")
    exclusive = Attr(False, "Leave out the element itself, so that the first sum is that of nothing.")
    reverse = Attr(False, "Add up from the end.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        if ctx.attr("flatten"):
            ctx.set_dim("Out", (-1 if -1 in dims else math.prod(dims),))
        else:
            rank = max(len(dims), 1)
            ctx.require(
                isinstance(axis, str) or -rank <= axis < rank,
                f"axis is {axis} and X has shape {list(dims)}; expected an axis between {-rank} and {rank - 1}",
            )
            ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
