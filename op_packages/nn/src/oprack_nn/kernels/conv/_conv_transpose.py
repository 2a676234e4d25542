"""Transposed convolution: the adjoint of a convolution by its input, so the roles of Input and Output are swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.conv._maps import (
    Geometry,
    convolve,
    convolve_adjoint_filter,
    convolve_adjoint_input,
    pad_spatial,
)
from oprack_nn.ops.conv._conv_transpose import conv_transpose_out

PLACES = ("cpu", "cuda")


def output_dims(
    spatial: tuple[int, ...], geo: Geometry, output_size: Sequence[int], output_padding: Sequence[int]
) -> tuple[int, ...]:
    """Spatial dims of the output."""
    if output_size:
        return tuple(output_size)
    out = [
        conv_transpose_out(x, *rest)
        for x, *rest in zip(spatial, geo.ksize, geo.pads, geo.strides, geo.dilations, strict=True)
    ]
    return tuple(o + e for o, e in zip(out, output_padding or [0] * len(out), strict=True))


def transpose(
    x: Array,
    w: Array,
    geo: Geometry,
    size: tuple[int, ...],
    data_format: str,
    xp: ArrayModule,
    bias: Array | None = None,
) -> Array:
    """The transposed convolution of x, with `size` as its spatial dims."""
    y = convolve_adjoint_input(to_channel_first(x, data_format), w, size, geo, xp)
    if bias is not None:
        y = y + bias.reshape(-1, *(1,) * (y.ndim - 2))
    return from_channel_first(y, data_format, xp)


def geometry(x: Array, w: Array, attrs: Mapping[str, Any], data_format: str) -> Geometry:
    """Geometry of the convolution whose adjoint the op is."""
    return Geometry.of(to_channel_first(x, data_format).shape[2:], w.shape, attrs)


def fit(dy: Array, x: Array, geo: Geometry, xp: ArrayModule) -> tuple[Array, Geometry]:
    """The gradient with its end cropped or filled so that the convolution has the forward input's size."""
    needed = [
        (s - 1) * t + d * (q - 1) + 1 - a - b
        for s, t, d, q, (a, b) in zip(x.shape[2:], geo.strides, geo.dilations, geo.ksize, geo.pads, strict=True)
    ]
    # rows that output_size or output_padding added lie where the trailing pad was, so less of it is left
    ends = [b - (o - n) for (_, b), o, n in zip(geo.pads, dy.shape[2:], needed, strict=True)]
    padded = pad_spatial(dy, [(a, e) for (a, _), e in zip(geo.pads, ends, strict=True)], xp)
    return padded, Geometry(geo.ksize, geo.strides, ((0, 0),) * len(ends), geo.dilations, geo.groups)


def conv_transpose_grad(
    Input: Array, Filter: Array, Output_grad: Array, *, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    """The gradient of a transposed convolution by Input and by Filter."""
    x = to_channel_first(Input, data_format)
    geo = geometry(Input, Filter, ctx.attrs, data_format)
    dy, geo = fit(to_channel_first(Output_grad, data_format), x, geo, xp)
    grads = {}
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = from_channel_first(convolve(dy, Filter, geo, xp), data_format, xp)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = convolve_adjoint_filter(dy, x, geo, xp)
    return grads
