"""send_v2: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, empty_grad

from oprack_collective.ops._attrs import DYNAMIC_SHAPE, PEER, RING_ID, USE_CALC_STREAM


class SendV2(OpDef, type="send_v2"):
    r"""$$Out_{peer} = X$$: X is sent to the rank `peer`, where recv_v2 takes it."""

    X = Input("Tensor of any shape.")
    ring_id = RING_ID
    peer = PEER
    use_calc_stream = USE_CALC_STREAM
    dynamic_shape = DYNAMIC_SHAPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
