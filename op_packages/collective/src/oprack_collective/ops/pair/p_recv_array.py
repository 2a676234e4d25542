"""p_recv_array: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, OpDef, Output, empty_grad
from oprack.types import VarType

from oprack_collective.ops._attrs import DTYPE, OUT_SHAPE, PEER, RING_ID


class PRecvArray(OpDef, type="p_recv_array"):
    r"""$$out = x_{peer}$$: the tensors that the rank `peer` sends by p_send_array, in their shapes."""

    out = Output("Array of tensors.")
    ring_id = RING_ID
    peer = PEER
    dtype = DTYPE
    out_shape = OUT_SHAPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """The shapes come with the tensors."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("out", ctx.attrs["dtype"])
