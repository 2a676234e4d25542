"""squeeze2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.ops.shape._squeeze import SqueezeOp
from oprack_tensor.ops.shape._xshape import XSHAPE, XShapeGrad, keep_shape


class Squeeze2(SqueezeOp, type="squeeze2"):
    r"""$$Out.flat = X.flat$$ without those of X's dims `axes` that have size 1; without all such dims when `axes` is
    empty.
    """

    XShape = XSHAPE
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS, support_tensor=True)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        SqueezeOp.infer_shape(ctx)
        keep_shape(ctx)


class Squeeze2Grad(XShapeGrad, of=Squeeze2, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
