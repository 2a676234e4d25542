"""sparse_mv and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output

from oprack_sparse.ops.product._types import DENSE


class SparseMv(OpDef, type="sparse_mv"):
    r"""$$out_i = \sum_k x_{ik} vec_k$$"""

    x = Input("Sparse matrix [m, k].")
    vec = Input("Tensor [k].")
    out = Output("Tensor [m].")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime and not ctx.dim("x"):
            return
        rows, columns = ctx.require_rank("x", 2)
        ctx.require_dims("vec", (columns,), why="one number for each column of x")
        ctx.set_dim("out", (rows,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", DENSE)
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseMvGrad(GradOpDef, of=SparseMv, reads="x vec"):
    r"""$$x@GRAD_{ik} = out@GRAD_i\, vec_k$$ where x lists it, $$vec@GRAD = x^T out@GRAD$$"""
