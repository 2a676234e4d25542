"""fft_c2c and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import all_but

from oprack_fft.ops._transform import AXES, FORWARD, NORMALIZATION, points


class FftC2c(OpDef, type="fft_c2c"):
    r"""$$Out_k = s \sum_j X_j e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`."""

    X = Input("Complex tensor of rank 1 or more.")
    Out = Output("Shape of X; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", points(ctx, real=False)[0])


class FftC2cGrad(GradOpDef, of=FftC2c, reads="Out@GRAD", like="Out@GRAD", lod=False, linear=True):
    r"""$$X@GRAD_j = s \sum_k Out@GRAD_k\, e^{\pm 2 \pi i\, jk / n}$$ the adjoint: the other way, by the same factor."""
