"""p_recv: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, OpDef, Output, dtype_of_attr, empty_grad

from oprack_collective.ops._attrs import DTYPE, DYNAMIC_SHAPE, PEER, RING_ID


class PRecv(OpDef, type="p_recv"):
    r"""$$out = x_{peer}$$: what the rank `peer` sends by p_send, in its shape."""

    out = Output("What the other rank sent.")
    ring_id = RING_ID
    peer = PEER
    dtype = DTYPE
    dynamic_shape = DYNAMIC_SHAPE
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """The shape comes with the tensor."""
