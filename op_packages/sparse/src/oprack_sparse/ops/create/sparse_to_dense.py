"""sparse_to_dense and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class SparseToDense(OpDef, type="sparse_to_dense"):
    r"""$$out_i = \sum_{k : i_k = i} x.values_k$$, zero where nothing is listed."""

    x = Input("Sparse tensor.")
    out = Output("Tensor of x's shape.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseToDenseGrad(GradOpDef, of=SparseToDense, reads="x"):
    r"""$$x@GRAD.values_k = out@GRAD_{i_k}$$"""
