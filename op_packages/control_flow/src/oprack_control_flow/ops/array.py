"""Tensor arrays: written, read, counted, joined."""

from __future__ import annotations

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    empty_grad,
)
from oprack.types import VarType


# lod_array_length: its definition; the operator is in the file of this name below operators.
class LoDArrayLength(OpDef, type="lod_array_length"):
    r"""$$Out = |X|$$: the number of places of an array."""

    X = Input("Tensor array.")
    Out = Output("int64 [1]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", "int64")


# read_from_array: its definition; the operator is in the file of this name below operators.
class ReadFromArray(OpDef, type="read_from_array"):
    r"""$$Out = X[I]$$; zeros like X_W when the array has no such place and X_W is given (the array is a gradient)."""

    X = Input("Tensor array.")
    I = Input("One integer: the place.")  # noqa: E741  the slot's name
    X_W = Input("What was written at the place, when X is a gradient.", dispensable=True)
    Out = Output("The tensor at the place.")
    no_need_buffer_vars = ("X_W",)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            like = "X_W" if ctx.has_input("X_W") else "X"
            ctx.set_dim("Out", ctx.dim(like))
            ctx.share_lod(like, "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp | list[GradOp]:
        """Out@GRAD is added to its place of X@GRAD."""
        place, flow, array = fwd.input("I"), fwd.output_grad("Out"), fwd.input_grad("X")
        if not fwd.has_grad("X"):
            return GradOp("write_to_array", X=flow, I=place, Out=array)
        before, total = fwd.temporary("before"), fwd.temporary("total")
        return [
            GradOp("read_from_array", I=place, X_W=flow, inputs={"X": array}, outputs={"Out": before}),
            GradOp("elementwise_add", X=before, Y=flow, outputs={"Out": total}),
            GradOp("write_to_array", X=total, I=place, Out=array),
        ]


# tensor_array_to_tensor: its definition; the operator is in the file of this name below operators.
class TensorArrayToTensor(OpDef, type="tensor_array_to_tensor"):
    r"""$$Out = [X[0]; X[1]; \ldots]$$ joined along `axis`, which is a new dim with use_stack."""

    X = Input("Tensor array.")
    Out = Output("The joined tensor.")
    OutIndex = Output("int32 [tensors]: size of each tensor along `axis`; 1 each with use_stack.")
    axis = Attr(0, "Dim to join along.")
    use_stack = Attr(False, "Join along a new dim.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            dims, axis = list(ctx.dim("X")), ctx.attr("axis")
            rank = len(dims) + bool(ctx.attr("use_stack"))
            ctx.require(
                -rank <= axis < rank or not dims,
                f"axis is {axis}; expected {-rank} <= axis < {rank} for tensors of shape {dims}",
            )
            if ctx.attr("use_stack"):
                dims.insert(axis % rank, -1)
            elif dims:
                dims[axis] = -1
            ctx.set_dim("Out", dims)
            ctx.set_dim("OutIndex", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))
        if ctx.has_output("OutIndex"):
            ctx.set_kind("OutIndex", VarType.LOD_TENSOR)
            ctx.set_dtype("OutIndex", "int32")


class TensorArrayToTensorGrad(GradOpDef, of=TensorArrayToTensor, reads="X Out@GRAD"):
    """X@GRAD takes Out@GRAD apart."""

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("X@GRAD", ctx.dim("X"))


# write_to_array: its definition; the operator is in the file of this name below operators.
class WriteToArray(OpDef, type="write_to_array"):
    r"""$$Out[I] = X$$; the array grows as needed."""

    X = Input("Tensor of any shape.")
    I = Input("One integer: the place.")  # noqa: E741  the slot's name
    Out = Output("Tensor array.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp | list[GradOp]:
        """X@GRAD is read from its place of Out@GRAD, which is then 0: what was there before is no longer seen."""
        place, flow, zeros = fwd.input("I"), fwd.output_grad("Out"), fwd.temporary("zeros")
        read = GradOp("read_from_array", X=flow, I=place, X_W=fwd.input("X"), Out=fwd.input_grad("X"))
        if not fwd.held_before("Out"):
            return read
        return [
            read,
            GradOp("fill_zeros_like", X=fwd.input("X"), outputs={"Out": zeros}),
            GradOp("write_to_array", X=zeros, I=place, outputs={"Out": flow}),
        ]
