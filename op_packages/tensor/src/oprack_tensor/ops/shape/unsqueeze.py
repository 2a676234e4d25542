"""unsqueeze: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext

from oprack_tensor.ops.shape._unsqueeze import UnsqueezeOp, infer_shape


class Unsqueeze(UnsqueezeOp, type="unsqueeze"):
    r"""$$Out.flat = X.flat$$ with a dim of size 1 inserted for each of `axes`, one after the other."""

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx)


class UnsqueezeGrad(GradOpDef, of=Unsqueeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}
