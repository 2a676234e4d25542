"""mean: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import reduction


class Mean(OpDef, type="mean"):
    r"""$$Out = \frac1n \sum X$$ over all elements; of no elements, NaN."""

    X = Input("Tensor of any shape.")
    Out = Output("0-D; no LoD.")
    sbp = reduction("mean")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())


class MeanGrad(GradOpDef, of=Mean, shape_of="X", linear=True):
    r"""$$X@GRAD = Out@GRAD / n$$"""
