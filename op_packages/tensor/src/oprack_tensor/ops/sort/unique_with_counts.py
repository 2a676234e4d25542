"""unique_with_counts: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class UniqueWithCounts(OpDef, type="unique_with_counts"):
    r"""Out lists each value of X once, in the order of first appearance: $$X_i = Out_{Index_i},\quad Count_j =
    \#\{i : Index_i = j\}$$"""

    X = Input("[n]")
    Out = Output("[number of different values]")
    Index = Output("[n], the place in Out of each value of X.")
    Count = Output("How often each value of Out appears.")
    dtype = Attr(REQUIRED, "dtype of Index and Count as a number: 2 int32, 3 int64.", type=AttrType.INT).in_set((2, 3))
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 1)
        ctx.set_dim("Out", (-1,))
        ctx.set_dim("Index", dims)
        ctx.set_dim("Count", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        for slot in ("Index", "Count"):
            ctx.set_dtype(slot, ctx.attr("dtype"))
