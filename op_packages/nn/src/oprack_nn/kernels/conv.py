"""Kernels of conv2d, depthwise_conv2d, conv3d and their first and second gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._conv import (
    Geometry,
    convolve,
    convolve_adjoint_filter,
    convolve_adjoint_input,
    from_channel_first,
    to_channel_first,
)

_PLACES = ("cpu", "cuda")


@kernel("conv2d", place=_PLACES, dtypes=FLOATS)
@kernel("depthwise_conv2d", place=_PLACES, dtypes=FLOATS)
@kernel("conv3d", place=_PLACES, dtypes=FLOATS)
def conv(Input, Filter, *, data_format, ctx, xp):
    x = to_channel_first(Input, data_format)
    geo = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    return from_channel_first(convolve(x, Filter, geo, xp), data_format, xp)


@kernel("conv2d_grad", place=_PLACES, dtypes=FLOATS)
@kernel("depthwise_conv2d_grad", place=_PLACES, dtypes=FLOATS)
@kernel("conv3d_grad", place=_PLACES, dtypes=FLOATS)
def conv_grad(Input, Filter, Output_grad, *, data_format, ctx, xp):
    x, dy = to_channel_first(Input, data_format), to_channel_first(Output_grad, data_format)
    geo = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    grads = {}
    if ctx.wants("Input@GRAD"):
        dx = convolve_adjoint_input(dy, Filter, x.shape[2:], geo, xp)
        grads["Input_grad"] = from_channel_first(dx, data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = convolve_adjoint_filter(x, dy, geo, xp)
    return grads


@kernel("conv2d_grad_grad", place=_PLACES, dtypes=FLOATS)
@kernel("depthwise_conv2d_grad_grad", place=_PLACES, dtypes=FLOATS)
@kernel("conv3d_grad_grad", place=_PLACES, dtypes=FLOATS)
def conv_grad_grad(Input, Filter, grad_out, grad_input_grad=None, grad_filter_grad=None, *, data_format, ctx, xp):
    x, dy = to_channel_first(Input, data_format), to_channel_first(grad_out, data_format)
    geo = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    ddx = None if grad_input_grad is None else to_channel_first(grad_input_grad, data_format)
    grads = {}
    if ctx.wants("Input@GRAD"):
        dx = (
            xp.zeros_like(x)
            if grad_filter_grad is None
            else convolve_adjoint_input(dy, grad_filter_grad, x.shape[2:], geo, xp)
        )
        grads["Input_grad"] = from_channel_first(dx, data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = xp.zeros_like(Filter) if ddx is None else convolve_adjoint_filter(ddx, dy, geo, xp)
    if ctx.wants("grad_out@GRAD"):
        ddy = xp.zeros_like(dy)
        if ddx is not None:
            ddy = ddy + convolve(ddx, Filter, geo, xp)
        if grad_filter_grad is not None:
            ddy = ddy + convolve(x, grad_filter_grad, geo, xp)
        grads["grad_out_grad"] = from_channel_first(ddy, data_format, xp)
    return grads
