"""Convolution and its gradients: one kernel each for any number of spatial dims and groups."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.conv._maps import Geometry, convolve, convolve_adjoint_filter, convolve_adjoint_input

PLACES = ("cpu", "cuda")


def conv(Input: Array, Filter: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule) -> Array:
    """A convolution."""
    x = to_channel_first(Input, data_format)
    geo = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    return from_channel_first(convolve(x, Filter, geo, xp), data_format, xp)


def conv_grad(
    Input: Array, Filter: Array, Output_grad: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    """Its gradient by Input and by Filter."""
    x, dy = to_channel_first(Input, data_format), to_channel_first(Output_grad, data_format)
    geo = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    grads = {}
    if ctx.wants("Input@GRAD"):
        dx = convolve_adjoint_input(dy, Filter, x.shape[2:], geo, xp)
        grads["Input_grad"] = from_channel_first(dx, data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = convolve_adjoint_filter(x, dy, geo, xp)
    return grads


def conv_grad_grad(
    Input: Array,
    Filter: Array,
    grad_out: Array,
    grad_input_grad: Array | None = None,
    grad_filter_grad: Array | None = None,
    *,
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """The gradient of conv_grad by Input, Filter and grad_out."""
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
