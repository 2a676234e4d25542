"""dist_concat: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID


class DistConcat(OpDef, type="dist_concat"):
    r"""$$out = [x_0, x_1, \dots]$$ along the last dim: the columns of all ranks of the ring, side by side."""

    x = Input("Tensor of rank 1 or more.")
    out = Output("No LoD.")
    ring_id = RING_ID
    nranks = Attr(1, "Number of ranks of the ring.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected a last dim along which ranks are joined")
        ctx.set_dim("out", (*dims[:-1], dims[-1] * n if dims[-1] >= 0 else -1))
