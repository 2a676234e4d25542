"""sparse_matmul and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output

from oprack_sparse.ops.product._types import product_dims, product_kind


class SparseMatmul(OpDef, type="sparse_matmul"):
    r"""$$out = x y$$ of matrices, or of each pair of a batch."""

    x = Input("Sparse matrix [m, k], or a batch of them.")
    y = Input("Tensor [k, n], or a sparse tensor of x's layout.")
    out = Output("[m, n]: a tensor, or a sparse tensor where both factors are sparse.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", product_dims(ctx))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", product_kind(ctx))
        ctx.set_dtype("out", ctx.dtype("x"))


class SparseMatmulGrad(GradOpDef, of=SparseMatmul, reads="x y"):
    r"""$$x@GRAD = out@GRAD\, y^T$$ where x lists an element, $$y@GRAD = x^T out@GRAD$$ over a sparse y's pattern."""
