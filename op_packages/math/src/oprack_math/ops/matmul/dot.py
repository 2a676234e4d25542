"""dot and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class Dot(OpDef, type="dot"):
    r"""$$Out_b = \sum_i X_{b,i} Y_{b,i}$$"""

    X = Input("[K] or [B, K].")
    Y = Input("Shape of X.")
    Out = Output("Shape [] or [B]; no LoD.")
    sbp = leading(("X", "Y"), ("Out",), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 1, 2)
        ctx.same_dims("X", "Y")
        ctx.set_dim("Out", dims[:-1])


class DotGrad(GradOpDef, of=Dot, reads="X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""
