"""Kernels of conv2d_transpose and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.conv._conv_transpose import (
    PLACES,
    conv_transpose_grad,
    fit,
    geometry,
    output_dims,
    transpose,
)
from oprack_nn.kernels.conv._maps import convolve, convolve_adjoint_filter


@kernel("conv2d_transpose", place=PLACES, dtypes=FLOATS)
def conv2d_transpose(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    *,
    output_size: list[int],
    output_padding: list[int],
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    geo = geometry(Input, Filter, ctx.attrs, data_format)
    size = output_dims(to_channel_first(Input, data_format).shape[2:], geo, output_size, output_padding)
    return transpose(Input, Filter, geo, size, data_format, xp, Bias)


conv2d_transpose_grad = kernel("conv2d_transpose_grad", place=PLACES, dtypes=FLOATS)(conv_transpose_grad)


@kernel("conv2d_transpose_grad_grad", place=PLACES, dtypes=FLOATS)
def conv2d_transpose_grad_grad(
    Input: Array,
    Filter: Array,
    grad_out: Array,
    grad_x_grad: Array | None = None,
    grad_filter_grad: Array | None = None,
    *,
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    x = to_channel_first(Input, data_format)
    geo = geometry(Input, Filter, ctx.attrs, data_format)
    dy, conv_geo = fit(to_channel_first(grad_out, data_format), x, geo, xp)
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
            ddy = ddy + transpose(grad_x_grad, Filter, geo, size, data_format, xp)
        if grad_filter_grad is not None:
            ddy = ddy + transpose(Input, grad_filter_grad, geo, size, data_format, xp)
        grads["grad_out_grad"] = ddy
    return grads
