"""p_send_array: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, empty_grad

from oprack_collective.ops._attrs import PEER, RING_ID


class PSendArray(OpDef, type="p_send_array"):
    r"""$$out_{peer} = x$$: tensors and their shapes are sent to the rank `peer`, where p_recv_array takes them."""

    x = Input("An array of tensors, or tensors.", duplicable=True)
    ring_id = RING_ID
    peer = PEER
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
