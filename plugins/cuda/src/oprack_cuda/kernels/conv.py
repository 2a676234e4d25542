"""Convolutions by cuDNN, as the three maps of oprack_nn's sources; matrix products serve what cuDNN refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS
from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.conv import Geometry, convolve, convolve_adjoint_filter, convolve_adjoint_input, fit, output_dims
from oprack_nn.ops._layout import is_channel_last

from oprack_cuda import dnn

if TYPE_CHECKING:
    from oprack_cuda.context import CUDADeviceContext

REALS = FLOATS | HALF_FLOATS
PRIORITY = 20


def _dnn_kernel(op_type: str) -> Callable[..., Any]:
    return kernel(op_type, place="cuda", dtypes=REALS, library="cudnn", when=dnn.usable, priority=PRIORITY)


class _Maps:
    """Convolution and its adjoints for one call. layout: of the program's images."""

    def __init__(self, geometry: Geometry, layout: str, ctx: KernelContext, xp: ArrayModule) -> None:
        self.geometry, self.layout, self.xp = geometry, layout, xp
        self.device: CUDADeviceContext = ctx.device  # type: ignore[assignment]  # as everywhere at place cuda

    def _image(self, name: str, a: Array, b: Array, shape: tuple[int, ...], fallback: Callable[..., Any]) -> Array:
        """An image in the program's layout."""
        last = is_channel_last(self.layout)
        found = dnn.convolution(name, a, b, shape, self.geometry, self.device, channel_last=last)
        return from_channel_first(fallback() if found is None else found, self.layout, self.xp)

    def forward(self, x: Array, w: Array) -> Array:
        spatial = [
            (n + sum(pad) - (k - 1) * d - 1) // s + 1
            for n, k, s, pad, d in zip(
                x.shape[2:],
                self.geometry.ksize,
                self.geometry.strides,
                self.geometry.pads,
                self.geometry.dilations,
                strict=True,
            )
        ]
        shape = (x.shape[0], w.shape[0], *spatial)
        return self._image("conv_fprop", x, w, shape, lambda: convolve(x, w, self.geometry, self.xp))

    def by_input(self, dy: Array, w: Array, size: tuple[int, ...]) -> Array:
        shape = (dy.shape[0], w.shape[1] * self.geometry.groups, *size)
        return self._image(
            "conv_dgrad", dy, w, shape, lambda: convolve_adjoint_input(dy, w, tuple(size), self.geometry, self.xp)
        )

    def by_filter(self, x: Array, dy: Array, like: Array) -> Array:
        found = dnn.convolution("conv_wgrad", x, dy, like.shape, self.geometry, self.device)
        return convolve_adjoint_filter(x, dy, self.geometry, self.xp) if found is None else found


@_dnn_kernel("conv2d")
@_dnn_kernel("depthwise_conv2d")
@_dnn_kernel("conv3d")
def conv(Input: Array, Filter: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule) -> Array:
    x = to_channel_first(Input, data_format)
    maps = _Maps(Geometry.of(x.shape[2:], Filter.shape, ctx.attrs), data_format, ctx, xp)
    return maps.forward(x, xp.ascontiguousarray(Filter))


@_dnn_kernel("conv2d_grad")
@_dnn_kernel("depthwise_conv2d_grad")
@_dnn_kernel("conv3d_grad")
def conv_grad(
    Input: Array, Filter: Array, Output_grad: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    x, dy = to_channel_first(Input, data_format), to_channel_first(Output_grad, data_format)
    maps, grads = _Maps(Geometry.of(x.shape[2:], Filter.shape, ctx.attrs), data_format, ctx, xp), {}
    w = xp.ascontiguousarray(Filter)
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = maps.by_input(dy, w, x.shape[2:])
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = maps.by_filter(x, dy, w)
    return grads


def _transposed(
    x: Array,
    w: Array,
    size: Callable[..., Any],
    attrs: Mapping[str, Any],
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    first = to_channel_first(x, data_format)
    maps = _Maps(Geometry.of(first.shape[2:], w.shape, attrs), data_format, ctx, xp)
    return maps.by_input(first, xp.ascontiguousarray(w), size(first.shape[2:], maps.geometry))


@_dnn_kernel("conv2d_transpose")
@_dnn_kernel("depthwise_conv2d_transpose")
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
    def size(spatial: tuple[int, ...], geometry: Geometry) -> tuple[int, ...]:
        return output_dims(spatial, geometry, output_size, output_padding)

    y = _transposed(Input, Filter, size, ctx.attrs, data_format, ctx, xp)
    if Bias is not None:
        y += Bias if is_channel_last(data_format) else Bias.reshape(-1, *(1,) * (y.ndim - 2))
    return y


@_dnn_kernel("conv3d_transpose")
def conv3d_transpose(
    Input: Array,
    Filter: Array,
    *,
    output_size: list[int],
    output_padding: list[int],
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    def size(spatial: tuple[int, ...], geometry: Geometry) -> tuple[int, ...]:
        return output_dims(spatial, geometry, output_size, output_padding)

    return _transposed(Input, Filter, size, ctx.attrs, data_format, ctx, xp)


@_dnn_kernel("conv2d_transpose_grad")
@_dnn_kernel("depthwise_conv2d_transpose_grad")
@_dnn_kernel("conv3d_transpose_grad")
def conv_transpose_grad(
    Input: Array, Filter: Array, Output_grad: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    x = to_channel_first(Input, data_format)
    geometry = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    dy, geometry = fit(to_channel_first(Output_grad, data_format), x, geometry, xp)
    maps, grads, w = _Maps(geometry, data_format, ctx, xp), {}, xp.ascontiguousarray(Filter)
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = maps.forward(dy, w)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = maps.by_filter(dy, x, w)
    return grads
