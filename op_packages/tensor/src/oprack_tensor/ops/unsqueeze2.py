"""unsqueeze2 and unsqueeze: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, unsqueeze_dims
from oprack_tensor.ops._xshape import XShapeGrad

_AXES = "Places of the new dims in the shape made so far; negative ones count from the end."


def _infer_shape(ctx, tensor="", tensors=""):
    dims, axes = ctx.dim("X"), given_ints(ctx, "axes", tensor, tensors)
    unknown = any(a is None for a in axes)
    ctx.set_dim("Out", (-1,) * (len(dims) + len(axes)) if unknown else unsqueeze_dims(ctx.op_type, dims, axes))
    if unknown or unsqueeze_dims(ctx.op_type, (0,) * len(dims), axes)[:1] == [0]:  # rows are still rows
        ctx.share_lod("X", "Out")
    return dims


class Unsqueeze(OpDef, type="unsqueeze"):
    """Out is X with a dim of size 1 inserted for each of `axes`, one after the other."""

    X = Input("Tensor of any shape.")
    Out = Output("X with more dims; LoD of X unless a new dim comes first.")
    axes = Attr([], _AXES, type=AttrType.INTS)
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        _infer_shape(ctx)


class UnsqueezeGrad(GradOpDef, of=Unsqueeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}


class Unsqueeze2(OpDef, type="unsqueeze2"):
    """Out is X with a dim of size 1 inserted for each of `axes`, one after the other."""

    X = Input("Tensor of any shape.")
    AxesTensor = Input("int32 or int64 [n], overrides `axes`.", dispensable=True)
    AxesTensorList = Input("n one-element tensors, override `axes`.", dispensable=True, duplicable=True)
    Out = Output("X with more dims; LoD of X unless a new dim comes first.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)
    axes = Attr([], _AXES, type=AttrType.INTS)
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        dims = _infer_shape(ctx, "AxesTensor", "AxesTensorList")
        ctx.set_dim("XShape", (0, *dims))
        ctx.share_lod("X", "XShape")


class Unsqueeze2Grad(XShapeGrad, of=Unsqueeze2, shape_of="XShape AxesTensor AxesTensorList", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
