"""all_gather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID


class AllGather(OpDef, type="all_gather"):
    r"""$$out = [x_0, x_1, \dots]$$: the rows of all ranks of the ring, one after the other."""

    x = Input("Tensor of rank 1 or more.")
    out = Output("No LoD.")
    ring_id = RING_ID
    nranks = Attr(0, "Number of ranks of the ring.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected rows, which are joined")
        ctx.set_dim("out", (dims[0] * n if dims[0] >= 0 and n > 0 else -1, *dims[1:]))
