"""Definitions of ops by which one rank sends to another."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import VarType

from oprack_collective.ops._attrs import DTYPE, DYNAMIC_SHAPE, OUT_SHAPE, PEER, RING_ID, USE_CALC_STREAM


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


# p_recv_array: its definition; the operator is in the file of this name below operators.
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


class PSend(OpDef, type="p_send"):
    r"""$$out_{peer} = x$$: x and its shape are sent to the rank `peer`, where p_recv takes them."""

    x = Input("Tensor of any shape.")
    ring_id = RING_ID
    peer = PEER
    dynamic_shape = DYNAMIC_SHAPE
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# p_send_array: its definition; the operator is in the file of this name below operators.
class PSendArray(OpDef, type="p_send_array"):
    r"""$$out_{peer} = x$$: tensors and their shapes are sent to the rank `peer`, where p_recv_array takes them."""

    x = Input("An array of tensors, or tensors.", duplicable=True)
    ring_id = RING_ID
    peer = PEER
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


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


class PartialSend(OpDef, type="partial_send"):
    r"""$$Out_{peer}.flat_{id} = X.flat_{id}$$: part `id` of `num` equal ones of X.flat is sent to the rank `peer`."""

    X = Input("Tensor of any shape.")
    ring_id = RING_ID
    peer = PEER
    use_calc_stream = USE_CALC_STREAM
    num = Attr(1, "Number of parts.").at_least(1)
    id = Attr(0, "Which part, from 0.").at_least(0)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


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
