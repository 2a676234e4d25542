"""cross and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

FIRST_OF_THREE = 9
"""Value of `dim` that stands for the first dim of size 3."""


class Cross(OpDef, type="cross"):
    r"""$$Out = X \times Y = (x_2 y_3 - x_3 y_2,\ x_3 y_1 - x_1 y_3,\ x_1 y_2 - x_2 y_1)$$ along a dim of size 3."""

    X = Input("Tensor with a dim of size 3.")
    Y = Input("Tensor of X's shape.")
    Out = Output("Shape and LoD of X.")
    dim = Attr(FIRST_OF_THREE, "Dim of the vectors; negative counts from the end, 9 is the first one of size 3.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, dim = ctx.dim("X"), ctx.attr("dim")
        ctx.same_dims("X", "Y")
        if dim == FIRST_OF_THREE:
            ctx.require(3 in dims or -1 in dims, f"X has shape {list(dims)}; expected a dim of size 3")
        else:
            size = dims[ctx.axis("X", "dim")] if dims else 0
            ctx.require(size in (3, -1), f"X has shape {list(dims)} and dim is {dim}; expected size 3 there")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class CrossGrad(GradOpDef, of=Cross, reads="X Y"):
    r"""$$X@GRAD = Y \times Out@GRAD,\quad Y@GRAD = Out@GRAD \times X$$"""
