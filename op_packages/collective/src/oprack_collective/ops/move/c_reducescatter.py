"""c_reducescatter: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class CReducescatter(OpDef, type="c_reducescatter"):
    r"""$$Out = (\sum_r X_r)_{rank}$$: of the sum over the ranks of the ring, this rank's part of the rows."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    nranks = Attr(1, "Number of ranks of the ring.")
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("Out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))
