"""inverse and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims


class Inverse(OpDef, type="inverse"):
    r"""$$Output = Input^{-1}$$"""

    Input_ = Input("[..., N, N], not singular.", name="Input")
    Output_ = Output("Shape of Input; no LoD.", name="Output")
    sbp = leading(("Input",), ("Output",), lambda ctx: len(ctx.dim("Input")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Output", square_dims(ctx, "Input"))


class InverseGrad(GradOpDef, of=Inverse, reads="Output", like="Output"):
    r"""$$Input@GRAD = -Output^T\,Output@GRAD\,Output^T$$"""
