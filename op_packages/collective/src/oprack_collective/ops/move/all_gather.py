"""all_gather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_collective.ops._small_like import SmallRows


class AllGather(SmallRows, type="all_gather"):
    r"""$$out = [x_0, x_1, \dots]$$: the rows of all ranks of the ring, one after the other."""

    nranks = Attr(0, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected rows, which are joined")
        ctx.set_dim("out", (dims[0] * n if dims[0] >= 0 and n > 0 else -1, *dims[1:]))
