"""sparse_values and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class SparseValues(OpDef, type="sparse_values"):
    r"""$$out = x.values$$: a tensor [n, dense dims ...]."""

    x = Input("Sparse tensor.")
    out = Output("Its values. How many dims they have is known when it runs.")

    def infer_shape(ctx: InferShapeContext) -> None:
        """No dims: how many x's values have is known to the kernel alone."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseValuesGrad(GradOpDef, of=SparseValues, reads="x"):
    r"""$$x@GRAD.values = out@GRAD$$"""
