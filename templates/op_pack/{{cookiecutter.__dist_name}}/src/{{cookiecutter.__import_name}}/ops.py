"""Definitions of ops: all of them but their kernels. They import no array library."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import unary


class {{ cookiecutter.__class_name }}(OpDef, type="{{ cookiecutter.first_op }}"):
    r"""$$Out = factor \cdot X^2$$, element by element."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, dtype and LoD of X.")
    factor = Attr(1.0, "Factor; not zero.").check(lambda v: v != 0, "a value other than 0")
    sbp = unary  # on several ranks, any dim may be split

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class {{ cookiecutter.__class_name }}Grad(GradOpDef, of={{ cookiecutter.__class_name }}, reads="X"):
    r"""$$X@GRAD = 2 \cdot factor \cdot X \cdot Out@GRAD$$"""
