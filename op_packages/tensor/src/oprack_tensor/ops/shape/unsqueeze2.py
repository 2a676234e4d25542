"""unsqueeze2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, dtype_of

from oprack_tensor.ops.shape._unsqueeze import UnsqueezeOp, infer_shape
from oprack_tensor.ops.shape._xshape import XSHAPE, XShapeGrad, keep_shape


class Unsqueeze2(UnsqueezeOp, type="unsqueeze2"):
    r"""$$Out.flat = X.flat$$ with a dim of size 1 inserted for each of `axes`, one after the other."""

    AxesTensor = Input("int32 or int64 [n], overrides `axes`.", dispensable=True)
    AxesTensorList = Input("n one-element tensors, override `axes`.", dispensable=True, duplicable=True)
    XShape = XSHAPE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, "AxesTensor", "AxesTensorList")
        keep_shape(ctx)


class Unsqueeze2Grad(XShapeGrad, of=Unsqueeze2, shape_of="XShape AxesTensor AxesTensorList", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
