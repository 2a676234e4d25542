"""c_scatter: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class CScatter(OpDef, type="c_scatter"):
    r"""$$Out = X_{root, rank}$$: this rank's part of the rows that the rank `root` has."""

    X = Input("Tensor of rank 1 or more; the same shape on every rank.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    root = Attr(0, "The rank whose X counts.").at_least(0)
    nranks = Attr(0, "Number of ranks of the ring.")
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and n > 0 and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("Out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))
