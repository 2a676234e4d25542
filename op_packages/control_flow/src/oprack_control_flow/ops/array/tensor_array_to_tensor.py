"""tensor_array_to_tensor: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


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
