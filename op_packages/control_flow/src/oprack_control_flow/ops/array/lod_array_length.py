"""lod_array_length: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import VarType


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
