"""max_pool2d_with_index, max_pool3d_with_index and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef

from oprack_nn.ops._conv import paddings_attr, positive
from oprack_nn.ops._pool import ksize_attr, pool_geometry


def _output_dims(ctx):
    dims = ctx.require_rank("X", len(ctx.attr("strides")) + 2)
    return (*dims[:2], *pool_geometry(ctx, dims[2:]).out)


def _infer_shape(ctx):
    dims = _output_dims(ctx)
    ctx.set_dim("Out", dims)
    ctx.set_dim("Mask", dims)


def _infer_var_type(ctx):
    ctx.set_dtype("Out", ctx.dtype("X"))
    ctx.set_dtype("Mask", "int32")


class MaxPool2DWithIndex(OpDef, type="max_pool2d_with_index"):
    """Max pooling that also says where: Mask is y W + x of the first maximum of each window."""

    X = op.Input("[N, C, H, W].")
    Out = op.Output("[N, C, H', W'].")
    Mask = op.Output("[N, C, H', W'], int32: position in the H x W plane.")
    ksize = ksize_attr()
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type


class MaxPool3DWithIndex(OpDef, type="max_pool3d_with_index"):
    """Max pooling that also says where: Mask is (z H + y) W + x of the first maximum of each window."""

    X = op.Input("[N, C, D, H, W].")
    Out = op.Output("[N, C, D', H', W'].")
    Mask = op.Output("[N, C, D', H', W'], int32: position in the D x H x W volume.")
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type


class MaxPool2DWithIndexGrad(
    GradOpDef,
    of=MaxPool2DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": _output_dims, "Out@GRAD": _output_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""


class MaxPool3DWithIndexGrad(
    GradOpDef,
    of=MaxPool3DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": _output_dims, "Out@GRAD": _output_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""
