"""sparse_add and its gradient."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input
from oprack.types import VarType

from oprack_sparse.ops.elementwise._family import Binary, BinaryGrad


class SparseAdd(Binary, type="sparse_add"):
    r"""$$out = x + y$$, or, of the listed elements of x alone, $$out.values = x.values + y$$ with a dense y."""

    y = Input("Sparse tensor of x's layout and shape, or a tensor [last dim of x] for the values of a COO tensor.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.kind("y") is VarType.LOD_TENSOR:
            ctx.require_dims("y", ctx.dim("x")[-1:], why="one number for each place in the last dim of x")
        else:
            ctx.same_dims("x", "y")
        ctx.set_dim("out", ctx.dim("x"))


class SparseAddGrad(BinaryGrad, of=SparseAdd):
    r"""$$x@GRAD = out@GRAD,\quad y@GRAD = out@GRAD$$ where each is listed; of a dense y, the sum over the elements."""
