"""dist_concat: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_collective.ops._small_like import SmallRows


class DistConcat(SmallRows, type="dist_concat"):
    r"""$$out = [x_0, x_1, \dots]$$ along the last dim: the columns of all ranks of the ring, side by side."""

    nranks = Attr(1, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected a last dim along which ranks are joined")
        ctx.set_dim("out", (*dims[:-1], dims[-1] * n if dims[-1] >= 0 else -1))
