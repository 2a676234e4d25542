"""sparse_indices: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import VarType


class SparseIndices(OpDef, type="sparse_indices"):
    r"""$$out_{:, k} = i_k$$: the coordinates of the listed elements."""

    x = Input("Sparse tensor in COO.")
    out = Output("Int64 [sparse dims, n].")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", (-1, -1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", "int64")
