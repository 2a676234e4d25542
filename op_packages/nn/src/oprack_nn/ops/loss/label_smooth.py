"""label_smooth: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class LabelSmooth(OpDef, type="label_smooth"):
    r"""$$Out = (1 - epsilon) X + epsilon \cdot p$$ with p = PriorDist, or 1 / classes"""

    X = Input("One-hot or soft labels, classes in the last dim.")
    PriorDist = Input("Prior of the classes [1, classes].", dispensable=True)
    Out = Output("Shape and LoD of X.")
    epsilon = Attr(0.0, "Weight of the prior.").between(0.0, 1.0)
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class LabelSmoothGrad(GradOpDef, of=LabelSmooth, grads_of="X", like="Out@GRAD"):
    r"""$$X@GRAD = (1 - epsilon) Out@GRAD$$"""
