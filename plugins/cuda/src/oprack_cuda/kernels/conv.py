"""Convolutions by cuDNN, as the three maps of oprack_nn's sources; matrix products serve what cuDNN refuses."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS
from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.conv._conv_transpose import fit, output_dims
from oprack_nn.kernels.conv._maps import Geometry, convolve, convolve_adjoint_filter, convolve_adjoint_input
from oprack_nn.ops._layout import is_channel_last

from oprack_cuda import dnn

REALS = FLOATS | HALF_FLOATS
PRIORITY = 20


def _dnn_kernel(op_type):
    return kernel(op_type, place="cuda", dtypes=REALS, library="cudnn", when=dnn.usable, priority=PRIORITY)


class _Maps:
    """Convolution and its adjoints for one call. layout: of the program's images."""

    def __init__(self, geometry, layout, ctx, xp):
        self.geometry, self.layout, self.device, self.xp = geometry, layout, ctx.device, xp

    def _image(self, name, a, b, shape, fallback):
        """An image in the program's layout."""
        last = is_channel_last(self.layout)
        found = dnn.convolution(name, a, b, shape, self.geometry, self.device, channel_last=last)
        return from_channel_first(fallback() if found is None else found, self.layout, self.xp)

    def forward(self, x, w):
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

    def by_input(self, dy, w, size):
        shape = (dy.shape[0], w.shape[1] * self.geometry.groups, *size)
        return self._image(
            "conv_dgrad", dy, w, shape, lambda: convolve_adjoint_input(dy, w, tuple(size), self.geometry, self.xp)
        )

    def by_filter(self, x, dy, like):
        found = dnn.convolution("conv_wgrad", x, dy, like.shape, self.geometry, self.device)
        return convolve_adjoint_filter(x, dy, self.geometry, self.xp) if found is None else found


@_dnn_kernel("conv2d")
@_dnn_kernel("depthwise_conv2d")
@_dnn_kernel("conv3d")
def conv(Input, Filter, *, data_format, ctx, xp):
    x = to_channel_first(Input, data_format)
    maps = _Maps(Geometry.of(x.shape[2:], Filter.shape, ctx.attrs), data_format, ctx, xp)
    return maps.forward(x, xp.ascontiguousarray(Filter))


@_dnn_kernel("conv2d_grad")
@_dnn_kernel("depthwise_conv2d_grad")
@_dnn_kernel("conv3d_grad")
def conv_grad(Input, Filter, Output_grad, *, data_format, ctx, xp):
    x, dy = to_channel_first(Input, data_format), to_channel_first(Output_grad, data_format)
    maps, grads = _Maps(Geometry.of(x.shape[2:], Filter.shape, ctx.attrs), data_format, ctx, xp), {}
    w = xp.ascontiguousarray(Filter)
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = maps.by_input(dy, w, x.shape[2:])
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = maps.by_filter(x, dy, w)
    return grads


def _transposed(x, w, size, attrs, data_format, ctx, xp):
    first = to_channel_first(x, data_format)
    maps = _Maps(Geometry.of(first.shape[2:], w.shape, attrs), data_format, ctx, xp)
    return maps.by_input(first, xp.ascontiguousarray(w), size(first.shape[2:], maps.geometry))


@_dnn_kernel("conv2d_transpose")
@_dnn_kernel("depthwise_conv2d_transpose")
def conv2d_transpose(Input, Filter, Bias=None, *, output_size, output_padding, data_format, ctx, xp):
    def size(spatial, geometry):
        return output_dims(spatial, geometry, output_size, output_padding)

    y = _transposed(Input, Filter, size, ctx.attrs, data_format, ctx, xp)
    if Bias is not None:
        y += Bias if is_channel_last(data_format) else Bias.reshape(-1, *(1,) * (y.ndim - 2))
    return y


@_dnn_kernel("conv3d_transpose")
def conv3d_transpose(Input, Filter, *, output_size, output_padding, data_format, ctx, xp):
    def size(spatial, geometry):
        return output_dims(spatial, geometry, output_size, output_padding)

    return _transposed(Input, Filter, size, ctx.attrs, data_format, ctx, xp)


@_dnn_kernel("conv2d_transpose_grad")
@_dnn_kernel("depthwise_conv2d_transpose_grad")
@_dnn_kernel("conv3d_transpose_grad")
def conv_transpose_grad(Input, Filter, Output_grad, *, data_format, ctx, xp):
    x = to_channel_first(Input, data_format)
    geometry = Geometry.of(x.shape[2:], Filter.shape, ctx.attrs)
    dy, geometry = fit(to_channel_first(Output_grad, data_format), x, geometry, xp)
    maps, grads, w = _Maps(geometry, data_format, ctx, xp), {}, xp.ascontiguousarray(Filter)
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = maps.forward(dy, w)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = maps.by_filter(dy, x, w)
    return grads
