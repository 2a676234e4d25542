"""sparse_addmm and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output

from oprack_sparse.ops.product._types import product_dims


class SparseAddmm(OpDef, type="sparse_addmm"):
    r"""$$out = beta \cdot input + alpha \cdot x y$$"""

    input = Input("Tensor [m, n], or a sparse tensor of x's layout where y is one.")
    x = Input("Sparse matrix [m, k].")
    y = Input("Tensor [k, n], or a sparse tensor of x's layout.")
    out = Output("As input.")
    beta = Attr(1.0, "Factor of input.")
    alpha = Attr(1.0, "Factor of the product.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = product_dims(ctx)
        if dims:
            ctx.require_dims("input", dims, why="the shape of the product")
        ctx.set_dim("out", dims or ctx.dim("input"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("input"))
        ctx.set_dtype("out", ctx.dtype("input"))


class SparseAddmmGrad(GradOpDef, of=SparseAddmm, reads="input x y"):
    r"""$$input@GRAD = beta \cdot out@GRAD,\quad x@GRAD = alpha \cdot out@GRAD\, y^T$$
    $$y@GRAD = alpha \cdot x^T out@GRAD$$ each over the pattern of its tensor.
    """
