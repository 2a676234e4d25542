"""Kernels of convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.op.families import resolve_pads
from oprack.python.records import dataclass
from oprack.types import FLOATS

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.ops.conv import conv_transpose_out, resolve_dilations

if TYPE_CHECKING:
    from types import EllipsisType

    Index: TypeAlias = int | slice | EllipsisType

# maps -----------------------------------------------------------------------------------------------------------------
# Convolution as matrix products: the three bilinear maps of (input, filter, output) that all conv kernels use.
# Arrays are channels first, [N, C, *spatial], for any number of spatial dims; filters are [K, C / groups, *ksize].
# `xp` is numpy or cupy.
# Elements of the patch matrix that is built at a time: on the CPU it should stay in the cache.
_CPU_PATCHES, _GPU_PATCHES = 1 << 18, 1 << 27


@dataclass(frozen=True)
class Geometry:
    """How outputs lie over inputs: one entry per spatial dim."""

    ksize: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]
    groups: int

    @classmethod
    def of(cls, spatial: Sequence[int], filter_dims: Sequence[int], attrs: Mapping[str, Any]) -> Geometry:
        """From the shapes and the attributes of a conv op."""
        algorithm, ksize = attrs["padding_algorithm"], tuple(filter_dims[2:])
        return cls(
            ksize,
            tuple(attrs["strides"]),
            tuple(resolve_pads(algorithm, attrs["paddings"], spatial, ksize, attrs["strides"])),
            tuple(resolve_dilations(algorithm, attrs["dilations"])),
            attrs["groups"],
        )

    @property
    def pointwise(self) -> bool:
        """A 1x1 kernel without stride and padding: a plain matrix product."""
        return set(self.ksize) <= {1} and set(self.strides) <= {1} and not any(a or b for a, b in self.pads)

    def taps(self) -> Iterator[tuple[int, ...]]:
        return product(*(range(k) for k in self.ksize))

    def tap(self, tap: Sequence[int], out: Sequence[int]) -> tuple[Index, ...]:
        """Where one tap of the kernel reads the padded input, for `out` outputs."""
        return tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, self.dilations, out, self.strides, strict=True)
        )


def pad_spatial(x: Array, pads: Sequence[tuple[int, int]], xp: ArrayModule, value: float = 0.0) -> Array:
    """x with `value` around its spatial dims; x itself when there is nothing to add. Negative pads crop."""
    if not any(a or b for a, b in pads):
        return x
    sides = list(zip(x.shape[2:], pads, strict=True))
    padded = xp.full((*x.shape[:2], *(max(s + a + b, 0) for s, (a, b) in sides)), value, x.dtype)
    source: tuple[Index, ...] = tuple(slice(max(-a, 0), max(s + min(b, 0), 0)) for s, (a, b) in sides)
    inner = tuple(slice(max(a, 0), max(s + a + min(b, 0), 0)) for s, (a, b) in sides)
    padded[(..., *inner)] = x[(..., *source)]
    return padded


def crop_spatial(x: Array, pads: Sequence[tuple[int, int]], spatial: Sequence[int], xp: ArrayModule) -> Array:
    """The adjoint of pad_spatial: the `spatial` part behind the leading pads, zeros where x ends before."""
    return pad_spatial(x, [(-a, s + a - n) for (a, _), s, n in zip(pads, spatial, x.shape[2:], strict=True)], xp)


def patches(x: Array, geo: Geometry, out: Sequence[int], xp: ArrayModule) -> Array:
    """View [N, C, *ksize, *out] of the padded input. Raises InvalidArgumentError when it would reach beyond."""
    windows = zip(out, geo.strides, geo.dilations, geo.ksize, strict=True)
    reach = [(o - 1) * t + d * (q - 1) + 1 for o, t, d, q in windows]
    if any(r > s for r, s in zip(reach, x.shape[2:], strict=True)):
        raise InvalidArgumentError(
            f"windows {list(geo.ksize)} at {list(out)} positions reach over {reach} elements; the padded input has "
            f"{list(x.shape[2:])}"
        )
    steps = x.strides[2:]
    return xp.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *geo.ksize, *out),
        (
            *x.strides[:2],
            *(s * d for s, d in zip(steps, geo.dilations, strict=True)),
            *(s * t for s, t in zip(steps, geo.strides, strict=True)),
        ),
    )


def _row_blocks(rows: int, per_row: int, xp: ArrayModule) -> Iterator[tuple[int, int]]:
    """Ranges of output rows whose patch matrix is small enough."""
    step = max((_CPU_PATCHES if xp is np else _GPU_PATCHES) // max(per_row, 1), 1)
    return ((r, min(r + step, rows)) for r in range(0, rows, step))


def _channel_blocks(channels: int, per_channel: int, xp: ArrayModule) -> Iterator[Index]:
    """Ranges of channels that fit the cache together."""
    step = max((1 << 16) // max(per_channel, 1), 1) if xp is np else max(channels, 1)
    return (slice(c, min(c + step, channels)) for c in range(0, channels, step))


def _rows(geo: Geometry, r0: int, r1: int) -> slice:
    """Rows of the padded input under output rows r0 to r1."""
    start = r0 * geo.strides[0]
    return slice(start, start + (r1 - r0 - 1) * geo.strides[0] + geo.dilations[0] * (geo.ksize[0] - 1) + 1)


def convolve(x: Array, w: Array, geo: Geometry, xp: ArrayModule) -> Array:
    """Output [N, K, *out] of x [N, C, *spatial] and w [K, C / groups, *ksize]."""
    n, c, *spatial = x.shape
    k, c_group = w.shape[:2]
    groups = geo.groups
    w2 = w.reshape(groups, k // groups, -1)
    if geo.pointwise:
        return xp.matmul(w2, x.reshape(n, groups, c_group, math.prod(spatial))).reshape(n, k, *spatial)
    out = tuple(
        (s + a + b - d * (q - 1) - 1) // t + 1
        for s, (a, b), d, q, t in zip(spatial, geo.pads, geo.dilations, geo.ksize, geo.strides, strict=True)
    )
    x = pad_spatial(x, geo.pads, xp)
    if c_group == 1:
        return _convolve_depthwise(x, w, geo, out, xp)
    y = xp.empty((n, groups, k // groups, math.prod(out)), x.dtype)
    inner = math.prod(out[1:])
    for r0, r1 in _row_blocks(out[0], n * c * math.prod(geo.ksize) * inner, xp):
        cols = patches(x[:, :, _rows(geo, r0, r1)], geo, (r1 - r0, *out[1:]), xp)
        cols = cols.reshape(n, groups, w2.shape[2], (r1 - r0) * inner)
        part = y[..., r0 * inner : r1 * inner]
        if xp is np:
            np.matmul(w2, cols, out=part)
        else:
            part[...] = xp.matmul(w2, cols)  # CuPy's products want whole arrays to write to
    return y.reshape(n, k, *out)


def _convolve_depthwise(x: Array, w: Array, geo: Geometry, out: tuple[int, ...], xp: ArrayModule) -> Array:
    n, c = x.shape[:2]
    multiplier = w.shape[0] // c
    y = (xp.empty if math.prod(geo.ksize) else xp.zeros)((n, c, multiplier, *out), x.dtype)  # a sum over the taps
    taps = w.reshape(c, multiplier, *geo.ksize)
    ones = (1,) * len(out)
    for block in _channel_blocks(c, n * multiplier * math.prod(out), xp):
        part, total = x[:, block, None], y[:, block]
        scratch = xp.empty(total.shape, x.dtype)
        for i, tap in enumerate(geo.taps()):
            factor = taps[(block, slice(None), *tap)].reshape(-1, multiplier, *ones)
            xp.multiply(part[(..., *geo.tap(tap, out))], factor, out=scratch if i else total)
            if i:
                total += scratch
    return y.reshape(n, c * multiplier, *out)


def convolve_adjoint_input(y: Array, w: Array, spatial: Sequence[int], geo: Geometry, xp: ArrayModule) -> Array:
    """x [N, C, *spatial] from y [N, K, *out]: gradient of `convolve` by its input, or a transposed convolution."""
    n, k, *out = y.shape
    c_group, groups = w.shape[1], geo.groups
    w2 = w.reshape(groups, k // groups, -1).transpose(0, 2, 1)
    if geo.pointwise:
        x = xp.matmul(w2, y.reshape(n, groups, k // groups, math.prod(out))).reshape(n, groups * c_group, *out)
        return crop_spatial(x, geo.pads, spatial, xp)
    full = tuple(
        (o - 1) * s + d * (q - 1) + 1 for o, s, d, q in zip(out, geo.strides, geo.dilations, geo.ksize, strict=True)
    )
    # a convolution may leave the end of its input unread, and a transposed one may be asked for more than it reaches
    full = tuple(max(f, s + a) for f, s, (a, _) in zip(full, spatial, geo.pads, strict=True))
    x = xp.zeros((n, groups, c_group, *full), y.dtype)
    if c_group == 1:
        _adjoint_depthwise(y, w, x, geo, xp)
    else:
        y2 = y.reshape(n, groups, k // groups, math.prod(out))
        inner = math.prod(out[1:])
        for r0, r1 in _row_blocks(out[0], n * w2.shape[0] * w2.shape[1] * inner, xp):
            cols = xp.matmul(w2, y2[..., r0 * inner : r1 * inner])
            cols = cols.reshape(n, groups, c_group, *geo.ksize, r1 - r0, *out[1:])
            rows = x[:, :, :, _rows(geo, r0, r1)]
            for tap in geo.taps():
                rows[(..., *geo.tap(tap, (r1 - r0, *out[1:])))] += cols[(slice(None),) * 3 + tap]
    return crop_spatial(x.reshape(n, groups * c_group, *full), geo.pads, spatial, xp)


def _adjoint_depthwise(y: Array, w: Array, x: Array, geo: Geometry, xp: ArrayModule) -> None:
    n, c, _, *_ = x.shape
    out = y.shape[2:]
    multiplier = y.shape[1] // c
    taps, y = w.reshape(c, multiplier, *geo.ksize), y.reshape(n, c, multiplier, *out)
    ones = (1,) * len(out)
    for block in _channel_blocks(c, n * multiplier * math.prod(out), xp):
        for tap in geo.taps():
            factor = taps[(block, slice(None), *tap)].reshape(-1, multiplier, *ones)
            x[(slice(None), block, 0, *geo.tap(tap, out))] += (y[:, block] * factor).sum(axis=2)


def convolve_adjoint_filter(x: Array, y: Array, geo: Geometry, xp: ArrayModule) -> Array:
    """Filter gradient [K, C / groups, *ksize] of `convolve` from its input x and the gradient y of its output."""
    n, c = x.shape[:2]
    k, out = y.shape[1], y.shape[2:]
    groups = geo.groups
    x = pad_spatial(x, geo.pads, xp)
    if c == groups:
        y2 = y.reshape(n, c, k // c, *out)
        axes = (0, *range(3, y2.ndim))
        w = xp.empty((c, k // c, *geo.ksize), y.dtype)
        for tap in geo.taps():
            w[(..., *tap)] = (y2 * x[:, :, None][(..., *geo.tap(tap, out))]).sum(axis=axes)
        return w.reshape(k, 1, *geo.ksize)
    size = c // groups * math.prod(geo.ksize)
    w = xp.zeros((groups, k // groups, size), y.dtype)
    order = (1, *range(2, 2 + len(out)), 0, *range(2 + len(out), 2 + 2 * len(out)))
    for r0, r1 in _row_blocks(out[0], n * c * math.prod(geo.ksize) * math.prod(out[1:]), xp):
        cols = patches(x[:, :, _rows(geo, r0, r1)], geo, (r1 - r0, *out[1:]), xp)
        # images go beside positions, so that one product sums over both
        positions = n * (r1 - r0) * math.prod(out[1:])
        cols = cols.transpose(order).reshape(groups, size, positions)
        part = y[:, :, r0:r1].transpose(1, 0, *range(2, y.ndim)).reshape(groups, k // groups, positions)
        w += xp.matmul(part, cols.transpose(0, 2, 1))
    return w.reshape(k, c // groups, *geo.ksize)


# conv transpose -------------------------------------------------------------------------------------------------------
# Transposed convolution: the adjoint of a convolution by its input, so the roles of Input and Output are swapped.
PLACES = ("cpu", "cuda")


def output_dims(
    spatial: tuple[int, ...], geo: Geometry, output_size: Sequence[int], output_padding: Sequence[int]
) -> tuple[int, ...]:
    """Spatial dims of the output."""
    if output_size:
        return tuple(output_size)
    out = [
        conv_transpose_out(x, k, pad, stride, dilation)
        for x, k, pad, stride, dilation in zip(spatial, geo.ksize, geo.pads, geo.strides, geo.dilations, strict=True)
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


# shared ---------------------------------------------------------------------------------------------------------------
# Convolution and its gradients: one kernel each for any number of spatial dims and groups.
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


# conv2d ---------------------------------------------------------------------------------------------------------------
conv2d = kernel("conv2d", place=PLACES, dtypes=FLOATS)(conv)

conv2d_grad = kernel("conv2d_grad", place=PLACES, dtypes=FLOATS)(conv_grad)

conv2d_grad_grad = kernel("conv2d_grad_grad", place=PLACES, dtypes=FLOATS)(conv_grad_grad)


# conv2d_transpose -----------------------------------------------------------------------------------------------------
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


# conv3d ---------------------------------------------------------------------------------------------------------------
conv3d = kernel("conv3d", place=PLACES, dtypes=FLOATS)(conv)

conv3d_grad = kernel("conv3d_grad", place=PLACES, dtypes=FLOATS)(conv_grad)

conv3d_grad_grad = kernel("conv3d_grad_grad", place=PLACES, dtypes=FLOATS)(conv_grad_grad)


# conv3d_transpose -----------------------------------------------------------------------------------------------------
@kernel("conv3d_transpose", place=PLACES, dtypes=FLOATS)
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
    geo = geometry(Input, Filter, ctx.attrs, data_format)
    size = output_dims(to_channel_first(Input, data_format).shape[2:], geo, output_size, output_padding)
    return transpose(Input, Filter, geo, size, data_format, xp)


conv3d_transpose_grad = kernel("conv3d_transpose_grad", place=PLACES, dtypes=FLOATS)(conv_transpose_grad)


# depthwise_conv2d -----------------------------------------------------------------------------------------------------
depthwise_conv2d = kernel("depthwise_conv2d", place=PLACES, dtypes=FLOATS)(conv)

depthwise_conv2d_grad = kernel("depthwise_conv2d_grad", place=PLACES, dtypes=FLOATS)(conv_grad)

depthwise_conv2d_grad_grad = kernel("depthwise_conv2d_grad_grad", place=PLACES, dtypes=FLOATS)(conv_grad_grad)


# depthwise_conv2d_transpose -------------------------------------------------------------------------------------------
depthwise_conv2d_transpose = kernel("depthwise_conv2d_transpose", place=PLACES, dtypes=FLOATS)(conv2d_transpose)

depthwise_conv2d_transpose_grad = kernel("depthwise_conv2d_transpose_grad", place=PLACES, dtypes=FLOATS)(
    conv_transpose_grad
)
