"""recv_v2: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, OpDef, Output, dtype_of_attr, empty_grad

from oprack_collective.ops._attrs import DTYPE, DYNAMIC_SHAPE, OUT_SHAPE, PEER, RING_ID, USE_CALC_STREAM


class RecvV2(OpDef, type="recv_v2"):
    r"""$$Out = X_{peer}$$: what the rank `peer` sends by send_v2."""

    Out = Output("What the other rank sent.")
    ring_id = RING_ID
    peer = PEER
    dtype = DTYPE
    out_shape = OUT_SHAPE
    use_calc_stream = USE_CALC_STREAM
    dynamic_shape = DYNAMIC_SHAPE
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.attr("out_shape") and not ctx.attr("dynamic_shape"):
            ctx.set_dim("Out", tuple(ctx.attr("out_shape")))
        else:
            ctx.set_dim("Out", (-1,) * len(ctx.attr("out_shape")))
