"""squeeze2 and squeeze: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, squeeze_axes
from oprack_tensor.ops._xshape import XShapeGrad


def _infer_shape(ctx):
    dims, axes = ctx.dim("X"), given_ints(ctx, "axes")
    if any(a is None for a in axes):
        out = (-1,) * (len(dims) - len(axes))
    else:
        gone = squeeze_axes(ctx.op_type, dims, axes)
        if not ctx.guesses and any(dims[a] < 0 for a in axes or range(len(dims))):
            return dims
        out = tuple(d for i, d in enumerate(dims) if i not in gone)
    ctx.set_dim("Out", out)
    if dims and out and dims[0] == out[0]:
        ctx.share_lod("X", "Out")
    return dims


class Squeeze(OpDef, type="squeeze"):
    """Out is X without those of its dims `axes` that have size 1; without all such dims when `axes` is empty."""

    X = Input("Tensor of any shape.")
    Out = Output("X squeezed; LoD of X while the first dim stays.")
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS)
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        _infer_shape(ctx)


class SqueezeGrad(GradOpDef, of=Squeeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}


class Squeeze2(OpDef, type="squeeze2"):
    """Out is X without those of its dims `axes` that have size 1; without all such dims when `axes` is empty."""

    X = Input("Tensor of any shape.")
    Out = Output("X squeezed; LoD of X while the first dim stays.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)
    axes = Attr([], "Dims to remove; negative ones count from the end.", type=AttrType.INTS, support_tensor=True)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        dims = _infer_shape(ctx)
        ctx.set_dim("XShape", (0, *dims))
        ctx.share_lod("X", "XShape")


class Squeeze2Grad(XShapeGrad, of=Squeeze2, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
