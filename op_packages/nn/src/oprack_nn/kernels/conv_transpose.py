"""Kernels of conv2d_transpose, depthwise_conv2d_transpose, conv3d_transpose and their gradients.

A transposed convolution is the adjoint of a convolution by its input: the roles of Input and Output are swapped.
"""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._conv import (
    Geometry,
    convolve,
    convolve_adjoint_filter,
    convolve_adjoint_input,
    from_channel_first,
    pad_spatial,
    to_channel_first,
)
from oprack_nn.ops._conv import conv_transpose_out

_PLACES = ("cpu", "cuda")


def _output_size(spatial, geo, output_size, output_padding):
    if output_size:
        return tuple(output_size)
    out = [
        conv_transpose_out(x, *rest)
        for x, *rest in zip(spatial, geo.ksize, geo.pads, geo.strides, geo.dilations, strict=True)
    ]
    return tuple(o + e for o, e in zip(out, output_padding or [0] * len(out), strict=True))


def _conv_transpose(x, w, geo, size, data_format, xp, bias=None):
    y = convolve_adjoint_input(to_channel_first(x, data_format), w, size, geo, xp)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * (y.ndim - 2))
    return from_channel_first(y, data_format, xp)


def _geometry(x, w, attrs, data_format):
    return Geometry.of(to_channel_first(x, data_format).shape[2:], w.shape, attrs)


@kernel("conv2d_transpose", place=_PLACES, dtypes=FLOATS)
@kernel("depthwise_conv2d_transpose", place=_PLACES, dtypes=FLOATS)
def conv2d_transpose(Input, Filter, Bias=None, *, output_size, output_padding, data_format, ctx, xp):
    geo = _geometry(Input, Filter, ctx.attrs, data_format)
    size = _output_size(to_channel_first(Input, data_format).shape[2:], geo, output_size, output_padding)
    return _conv_transpose(Input, Filter, geo, size, data_format, xp, Bias)


@kernel("conv3d_transpose", place=_PLACES, dtypes=FLOATS)
def conv3d_transpose(Input, Filter, *, output_size, output_padding, data_format, ctx, xp):
    geo = _geometry(Input, Filter, ctx.attrs, data_format)
    size = _output_size(to_channel_first(Input, data_format).shape[2:], geo, output_size, output_padding)
    return _conv_transpose(Input, Filter, geo, size, data_format, xp)


def _fit(dy, x, geo, xp):
    """The gradient with its end cropped or filled so that the convolution has the forward input's size."""
    needed = [
        (s - 1) * t + d * (q - 1) + 1 - a - b
        for s, t, d, q, (a, b) in zip(x.shape[2:], geo.strides, geo.dilations, geo.ksize, geo.pads, strict=True)
    ]
    # rows that output_size or output_padding added lie where the trailing pad was, so less of it is left
    ends = [b - (o - n) for (_, b), o, n in zip(geo.pads, dy.shape[2:], needed, strict=True)]
    padded = pad_spatial(dy, [(a, e) for (a, _), e in zip(geo.pads, ends, strict=True)], xp)
    return padded, Geometry(geo.ksize, geo.strides, ((0, 0),) * len(ends), geo.dilations, geo.groups)


@kernel("conv2d_transpose_grad", place=_PLACES, dtypes=FLOATS)
@kernel("depthwise_conv2d_transpose_grad", place=_PLACES, dtypes=FLOATS)
@kernel("conv3d_transpose_grad", place=_PLACES, dtypes=FLOATS)
def conv_transpose_grad(Input, Filter, Output_grad, *, data_format, ctx, xp):
    x = to_channel_first(Input, data_format)
    geo = _geometry(Input, Filter, ctx.attrs, data_format)
    dy, geo = _fit(to_channel_first(Output_grad, data_format), x, geo, xp)
    grads = {}
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = from_channel_first(convolve(dy, Filter, geo, xp), data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = convolve_adjoint_filter(dy, x, geo, xp)
    return grads


@kernel("conv2d_transpose_grad_grad", place=_PLACES, dtypes=FLOATS)
def conv2d_transpose_grad_grad(
    Input, Filter, grad_out, grad_x_grad=None, grad_filter_grad=None, *, data_format, ctx, xp
):
    x = to_channel_first(Input, data_format)
    geo = _geometry(Input, Filter, ctx.attrs, data_format)
    dy, conv_geo = _fit(to_channel_first(grad_out, data_format), x, geo, xp)
    grads = {}
    if ctx.wants("Input@GRAD"):
        dx = xp.zeros_like(x) if grad_filter_grad is None else convolve(dy, grad_filter_grad, conv_geo, xp)
        grads["Input_grad"] = from_channel_first(dx, data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = (
            xp.zeros_like(Filter)
            if grad_x_grad is None
            else convolve_adjoint_filter(dy, to_channel_first(grad_x_grad, data_format), conv_geo, xp)
        )
    if ctx.wants("grad_out@GRAD"):
        ddy, size = xp.zeros_like(grad_out), to_channel_first(grad_out, data_format).shape[2:]
        if grad_x_grad is not None:
            ddy = ddy + _conv_transpose(grad_x_grad, Filter, geo, size, data_format, xp)
        if grad_filter_grad is not None:
            ddy = ddy + _conv_transpose(Input, grad_filter_grad, geo, size, data_format, xp)
        grads["grad_out_grad"] = ddy
    return grads
