"""partial_recv: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, OpDef, Output, dtype_of_attr, empty_grad

from oprack_collective.ops._attrs import DTYPE, OUT_SHAPE, PEER, RING_ID, USE_CALC_STREAM


class PartialRecv(OpDef, type="partial_recv"):
    r"""$$Out.flat_{id} = X_{peer}.flat_{id}$$: part `id` of `num` comes from the rank `peer`; the others are zero."""

    Out = Output("What the other rank sent.")
    ring_id = RING_ID
    peer = PEER
    dtype = DTYPE
    out_shape = OUT_SHAPE
    use_calc_stream = USE_CALC_STREAM
    num = Attr(1, "Number of parts.").at_least(1)
    id = Attr(0, "Which part, from 0.").at_least(0)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", tuple(ctx.attr("out_shape")))
