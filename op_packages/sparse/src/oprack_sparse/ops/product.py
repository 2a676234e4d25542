"""Ops that multiply matrices."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType

# Type and shape rules of products.
DENSE = VarType.LOD_TENSOR


def product_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of the product of x and y, matrices or batches of them."""
    x, y = ctx.dim("x"), ctx.dim("y")
    if not ctx.is_runtime and not (x and y):
        return ()
    rank = len(x) in (2, 3) and len(x) == len(y)
    ctx.require(rank, f"x has shape {list(x)} and y {list(y)}; expected two matrices, or two batches of them")
    fits = all(a == b or -1 in (a, b) for a, b in zip((x[-1], *x[:-2]), (y[-2], *y[:-2]), strict=True))
    ctx.require(
        fits, f"x has shape {list(x)} and y {list(y)}; expected as many columns of x as rows of y, and one batch"
    )
    return (*x[:-1], y[-1])


def product_kind(ctx: InferVarTypeContext) -> VarType:
    """A product is sparse where both factors are, in the layout of x."""
    return ctx.kind("x") if DENSE not in (ctx.kind("x"), ctx.kind("y")) else DENSE


# sparse_addmm and its gradient.
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


# sparse_masked_matmul and its gradient.
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


# sparse_matmul and its gradient.
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


# sparse_mv and its gradient.
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
