"""reduce_scatter: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_collective.ops._small_like import SmallRows


class ReduceScatter(SmallRows, type="reduce_scatter"):
    r"""$$out = (\sum_r x_r)_{rank}$$: of the sum over the ranks of the ring, this rank's part of the rows."""

    nranks = Attr(1, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        fits = bool(dims) and n > 0 and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"x has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))
