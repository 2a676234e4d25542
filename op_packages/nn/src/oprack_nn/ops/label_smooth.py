"""label_smooth: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output


class LabelSmooth(OpDef, type="label_smooth"):
    r"""$$Out = (1 - epsilon) X + epsilon \cdot p$$ with p = PriorDist, or 1 / classes"""

    X = Input("One-hot or soft labels, classes in the last dim.")
    PriorDist = Input("Prior of the classes [1, classes].", dispensable=True)
    Out = Output("Shape and LoD of X.")
    epsilon = Attr(0.0, "Weight of the prior.").between(0.0, 1.0)

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp("label_smooth_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class LabelSmoothGrad(GradOpDef, type="label_smooth_grad"):
    r"""$$X@GRAD = (1 - epsilon) Out@GRAD$$"""

    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Out@GRAD.")
    epsilon = Attr(0.0, "Weight of the prior.")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("Out@GRAD"))
        ctx.share_lod("Out@GRAD", "X@GRAD")
