"""Ops of two sparse tensors, element by element."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.types import VarType


# What functions of two sparse tensors share.
class Binary(OpDef):
    """A function of two sparse tensors of one layout and shape, where either lists an element."""

    x = Input("Sparse tensor.")
    y = Input("Sparse tensor of x's layout and shape; what it does not list counts as zero.")
    out = Output("Sparse tensor that lists what x or y lists, sorted by coordinates.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("x", "y")
        ctx.set_dim("out", ctx.dim("x"))


class BinaryGrad(GradOpDef, reads="x y"):
    """Gradient of a Binary: each over the pattern of its tensor."""


# sparse_add and its gradient.
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


# sparse_divide and its gradient.
class SparseDivide(Binary, type="sparse_divide"):
    r"""$$out = x / y$$ of all elements, each of which is listed, since 0/0 is NaN."""


class SparseDivideGrad(BinaryGrad, of=SparseDivide):
    r"""$$x@GRAD = out@GRAD / y,\quad y@GRAD = -out@GRAD \cdot x / y^2$$ where each is listed."""


# sparse_multiply and its gradient.
class SparseMultiply(Binary, type="sparse_multiply"):
    r"""$$out = x \cdot y$$"""


class SparseMultiplyGrad(BinaryGrad, of=SparseMultiply):
    r"""$$x@GRAD = out@GRAD \cdot y,\quad y@GRAD = out@GRAD \cdot x$$ where each is listed."""


# sparse_subtract and its gradient.
class SparseSubtract(Binary, type="sparse_subtract"):
    r"""$$out = x - y$$"""


class SparseSubtractGrad(BinaryGrad, of=SparseSubtract):
    r"""$$x@GRAD = out@GRAD,\quad y@GRAD = -out@GRAD$$ where each is listed."""
