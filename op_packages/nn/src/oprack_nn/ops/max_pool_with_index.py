"""max_pool2d_with_index, max_pool3d_with_index and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOp, GradOpDef, OpDef, dtype_of

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


def _infer_grad_shape(ctx):
    for slot in ("Mask", "Out@GRAD"):
        ctx.require_dims(slot, _output_dims(ctx), why="what the forward op gives")
    ctx.set_dim("X@GRAD", ctx.dim("X"))
    ctx.share_lod("X", "X@GRAD")


def _make_grad(fwd):
    return GradOp(
        fwd.type + "_grad",
        X=fwd.input("X"),
        Mask=fwd.output("Mask"),
        Out_grad=fwd.output_grad("Out"),
        X_grad=fwd.input_grad("X"),
        attrs=fwd.attrs,
    )


class _Attrs2D(OpDef):
    ksize = ksize_attr()
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")


class _Attrs3D(OpDef):
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")


class MaxPool2DWithIndex(_Attrs2D, type="max_pool2d_with_index"):
    """Max pooling that also says where: Mask is y W + x of the first maximum of each window."""

    X = op.Input("[N, C, H, W].")
    Out = op.Output("[N, C, H', W'].")
    Mask = op.Output("[N, C, H', W'], int32: position in the H x W plane.")
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type
    make_grad = _make_grad


class MaxPool3DWithIndex(_Attrs3D, type="max_pool3d_with_index"):
    """Max pooling that also says where: Mask is (z H + y) W + x of the first maximum of each window."""

    X = op.Input("[N, C, D, H, W].")
    Out = op.Output("[N, C, D', H', W'].")
    Mask = op.Output("[N, C, D', H', W'], int32: position in the D x H x W volume.")
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type
    make_grad = _make_grad


class MaxPool2DWithIndexGrad(_Attrs2D, GradOpDef, type="max_pool2d_with_index_grad"):
    """Adds Out@GRAD to X@GRAD at Mask."""

    X = op.Input("X of the forward op; its values are not read.")
    Mask = op.Input("Mask of the forward op.")
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    no_need_buffer_vars = ("X",)
    infer_shape = _infer_grad_shape
    expected_kernel_type = dtype_of("Out@GRAD")


class MaxPool3DWithIndexGrad(_Attrs3D, GradOpDef, type="max_pool3d_with_index_grad"):
    """Adds Out@GRAD to X@GRAD at Mask."""

    X = op.Input("X of the forward op; its values are not read.")
    Mask = op.Input("Mask of the forward op.")
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    no_need_buffer_vars = ("X",)
    infer_shape = _infer_grad_shape
    expected_kernel_type = dtype_of("Out@GRAD")
