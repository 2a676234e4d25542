"""p_send: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, empty_grad

from oprack_collective.ops._attrs import DYNAMIC_SHAPE, PEER, RING_ID


class PSend(OpDef, type="p_send"):
    r"""$$out_{peer} = x$$: x and its shape are sent to the rank `peer`, where p_recv takes them."""

    x = Input("Tensor of any shape.")
    ring_id = RING_ID
    peer = PEER
    dynamic_shape = DYNAMIC_SHAPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
