"""Definitions of the ops, without any array library."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
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


class MergeSelectedRows(OpDef, type="merge_selected_rows"):
    r"""$$Out.value_r = \sum_{i : X.rows_i = r} X.value_i$$: each row is listed once, in ascending order."""

    X = Input("SelectedRows whose rows may repeat.")
    Out = Output("SelectedRows of the same matrix.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
