"""sparse_masked_matmul and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output

from oprack_sparse.ops.product._types import product_dims


class SparseMaskedMatmul(OpDef, type="sparse_masked_matmul"):
    r"""$$out_{ij} = \sum_k x_{ik} y_{kj}$$ where mask lists (i, j); the other products are not computed."""

    x = Input("Tensor [m, k], or a batch.")
    y = Input("Tensor [k, n], or a batch.")
    mask = Input("Sparse tensor [m, n], of which the pattern alone is read.")
    out = Output("Sparse tensor of mask's layout and pattern.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = product_dims(ctx)
        if dims:
            ctx.require_dims("mask", dims, why="the shape of the product")
        ctx.set_dim("out", dims or ctx.dim("mask"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("mask"))
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseMaskedMatmulGrad(GradOpDef, of=SparseMaskedMatmul, reads="x y", grads_of="x y"):
    r"""$$x@GRAD = out@GRAD\, y^T,\quad y@GRAD = x^T out@GRAD$$"""
