"""get_tensor_from_selected_rows: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class GetTensorFromSelectedRows(OpDef, type="get_tensor_from_selected_rows"):
    r"""$$Out_i = X.value_i$$: a tensor [rows listed, ...] in their order; rows that repeat stay apart."""

    X = Input("SelectedRows.")
    Out = Output("Its values.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))
