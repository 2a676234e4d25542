"""Kernels of ops.windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_onnx_ops.kernels._interpolation import grid_sampled
from oprack_onnx_ops.ops.windows import window_axis


class Windows:
    """Where windows lie in an image.

    Args:
        sizes: Of the image.
        kernel: Of the window.
        strides, dilations, pads: As the op's attributes, empty for their defaults.
        auto: The attribute auto_pad.
        ceil: Whether sizes are rounded up.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        pads: Sequence[int],
        auto: str = "NOTSET",
        ceil: bool = False,
    ) -> None:
        rank = len(kernel)
        self.kernel, self.strides, self.dilations = kernel, strides or [1] * rank, dilations or [1] * rank
        pads = pads or [0] * (2 * rank)
        found = [
            window_axis(sizes[i], kernel[i], self.strides[i], self.dilations[i], (pads[i], pads[rank + i]), auto, ceil)
            for i in range(rank)
        ]
        self.counts = [max(f[0], 0) for f in found]
        self.before, self.behind = [f[1] for f in found], [f[2] for f in found]
        # what the last windows reach beyond the pads
        self.beyond = [
            max((n - 1) * s + d * (k - 1) + 1 - (size + a + b), 0)
            for n, s, d, k, size, a, b in zip(
                self.counts, self.strides, self.dilations, kernel, sizes, self.before, self.behind, strict=True
            )
        ]

    def padded(self, x: Array, value: float) -> Array:
        """x [batch, channels, *image] with what is around it."""
        widths = [(0, 0), (0, 0), *zip(self.before, map(sum, zip(self.behind, self.beyond, strict=True)), strict=True)]
        return np.pad(x, widths, constant_values=value)

    def of(self, padded: Array) -> Array:
        """[batch, channels, *counts, *kernel]: a view of a padded image."""
        steps = padded.strides[2:]
        strides = (
            *padded.strides[:2],
            *(s * b for s, b in zip(self.strides, steps, strict=True)),
            *(d * b for d, b in zip(self.dilations, steps, strict=True)),
        )
        shape = (*padded.shape[:2], *self.counts, *self.kernel)
        return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)

    def rows(self, padded: Array) -> Array:
        """[batch, channels, *counts, elements of a window]."""
        found = self.of(padded)
        return found.reshape(*found.shape[: -len(self.kernel)], -1)


def _least(dtype: np.dtype) -> float:
    return float(np.iinfo(dtype).min) if dtype.kind in "iu" else -math.inf


@kernel("onnx_max_pool", place="cpu")
def max_pool(
    X: Array,
    *,
    kernel_shape: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
    ceil_mode: bool,
    storage_order: bool,
) -> tuple[Array, Array]:
    windows = Windows(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    rows = windows.rows(windows.padded(X, _least(X.dtype)))
    best = np.argmax(rows, -1)
    values = np.take_along_axis(rows, best[..., None], -1)[..., 0]
    shape = X.shape[2:]
    flat = np.zeros(best.shape, np.int64)
    inside = np.unravel_index(best, kernel_shape)
    factor = 1
    order = list(range(len(shape))) if storage_order else list(range(len(shape)))[::-1]
    for axis in order:
        start = np.arange(windows.counts[axis]) * windows.strides[axis] - windows.before[axis]
        place = start.reshape((-1,) + (1,) * (len(shape) - 1 - axis)) + inside[axis] * windows.dilations[axis]
        flat += place * factor
        factor *= shape[axis]
    image = np.arange(X.shape[0] * X.shape[1]).reshape(X.shape[0], X.shape[1], *(1,) * len(shape))
    return values, flat + image * factor


@kernel("onnx_average_pool", place="cpu")
def average_pool(
    X: Array,
    *,
    kernel_shape: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Array:
    windows = Windows(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = windows.rows(windows.padded(X, 0)).sum(-1, dtype=X.dtype)
    ones = np.ones((1, 1, *X.shape[2:]))
    if count_include_pad:
        ones = np.pad(ones, [(0, 0), (0, 0), *zip(windows.before, windows.behind, strict=True)], constant_values=1)
        ones = np.pad(ones, [(0, 0), (0, 0), *((0, b) for b in windows.beyond)])
    else:
        ones = windows.padded(ones, 0)
    return (total / windows.rows(ones).sum(-1)).astype(X.dtype)


@kernel("onnx_lp_pool", place="cpu")
def lp_pool(
    X: Array,
    *,
    kernel_shape: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
    ceil_mode: bool,
    p: int,
) -> Array:
    windows = Windows(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    rows = windows.rows(windows.padded(np.abs(X), 0))
    return ((rows**p).sum(-1) ** (1 / p)).astype(X.dtype)


@kernel("onnx_max_unpool", place="cpu")
def max_unpool(
    X: Array,
    I: Array,  # noqa: E741
    output_shape: Array | None = None,
    *,
    kernel_shape: list[int],
    strides: list[int],
    pads: list[int],
) -> Array:
    rank = len(kernel_shape)
    strides, pads = strides or [1] * rank, pads or [0] * (2 * rank)
    least = [
        (n - 1) * s - pads[i] - pads[rank + i] + k
        for i, (n, s, k) in enumerate(zip(X.shape[2:], strides, kernel_shape, strict=True))
    ]
    small = np.zeros((*X.shape[:2], *least), X.dtype)
    small.reshape(-1)[I.reshape(-1)] = X.reshape(-1)
    if output_shape is None:
        return small
    out = np.zeros([int(d) for d in output_shape], X.dtype)
    out[tuple(slice(n) for n in small.shape)] = small
    return out


def convolution(x: Array, w: Array, windows: Windows, group: int, padded: Array) -> Array:
    """[batch, filters, *counts] of an image that was padded."""
    rows = windows.of(padded)
    rank = len(windows.kernel)
    batch, counts = x.shape[0], windows.counts
    rows = rows.reshape(batch, group, -1, *counts, *windows.kernel)
    columns = np.moveaxis(rows, 2, 2 + rank).reshape(batch, group, math.prod(counts), -1)
    filters = w.reshape(group, w.shape[0] // group, -1)
    out = np.matmul(filters[None], np.swapaxes(columns, -1, -2))
    return out.reshape(batch, w.shape[0], *counts)


@kernel("onnx_conv", place="cpu", dtypes=FLOATS)
def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
) -> Array:
    windows = Windows(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad)
    out = convolution(X, W, windows, group, windows.padded(X, 0))
    return out if B is None else out + B.reshape(-1, *(1,) * (X.ndim - 2))


def _transposed_pads(
    full: Sequence[int], wanted: Sequence[int], pads: Sequence[int], auto: str
) -> list[tuple[int, int]]:
    """What is cut off before and behind each axis of the full result."""
    rank = len(full)
    if not wanted:
        return [(pads[i], pads[rank + i]) for i in range(rank)]
    cut = []
    for size, target in zip(full, wanted, strict=True):
        total = size - target
        small = total // 2
        cut.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return cut


@kernel("onnx_conv_transpose", place="cpu", dtypes=FLOATS)
def conv_transpose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    auto_pad: str,
    output_padding: list[int],
    output_shape: list[int],
) -> Array:
    rank = X.ndim - 2
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * (2 * rank)
    extra, kernel = output_padding or [0] * rank, W.shape[2:]
    full = [(X.shape[2 + i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 + extra[i] for i in range(rank)]
    wanted = output_shape[-rank:] if output_shape else []
    if not wanted and auto_pad.startswith("SAME"):
        wanted = [X.shape[2 + i] * strides[i] for i in range(rank)]
    cut = _transposed_pads(full, wanted, pads, auto_pad)
    room = [max(f, a + t) for f, (a, _), t in zip(full, cut, wanted or full, strict=True)]
    batch, filters = X.shape[0], W.shape[1] * group
    x = X.reshape(batch, group, X.shape[1] // group, -1)
    w = W.reshape(group, W.shape[0] // group, W.shape[1], -1)
    parts = np.einsum("ngcx,gcfk->ngfkx", x, w).reshape(batch, filters, *kernel, *X.shape[2:])
    out = np.zeros((batch, filters, *room), X.dtype)
    for place in np.ndindex(*kernel):
        at = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilations, X.shape[2:], strides, strict=True)
        )
        out[(slice(None), slice(None), *at)] += parts[(slice(None), slice(None), *place)]
    ends = (
        [a + t for (a, _), t in zip(cut, wanted, strict=True)]
        if wanted
        else [f - b for f, (_, b) in zip(full, cut, strict=True)]
    )
    whole = (slice(None), slice(None))
    out = out[whole + tuple(slice(a, e) for (a, _), e in zip(cut, ends, strict=True))]
    return np.ascontiguousarray(out if B is None else out + B.reshape(-1, *(1,) * rank))


def _bilinear(x: Array, rows: Array, columns: Array, edge: bool) -> Array:
    """x [..., height, width] at places of one shape, as [..., *places]; outside 0, or to one pixel the edge."""
    height, width = x.shape[-2:]
    if edge:
        outside = (rows < -1) | (rows > height) | (columns < -1) | (columns > width)
        rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    out = np.zeros((*x.shape[:-2], *rows.shape), x.dtype)
    for dy, dx in np.ndindex(2, 2):
        r, c = top + dy, left + dx
        weight = (1 - np.abs(rows - r)) * (1 - np.abs(columns - c))
        weight = weight * ((r >= 0) & (r < height) & (c >= 0) & (c < width))
        out += x[..., np.clip(r, 0, height - 1), np.clip(c, 0, width - 1)] * weight
    return out * ~outside if edge else out


@kernel("onnx_deform_conv", place="cpu")
def deform_conv(
    X: Array,
    W: Array,
    offset: Array,
    B: Array | None = None,
    mask: Array | None = None,
    *,
    group: int,
    offset_group: int,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
) -> Array:
    windows = Windows(X.shape[2:], W.shape[2:], strides, dilations, pads)
    counts, kernel = windows.counts, W.shape[2:]
    shifts = offset.reshape(X.shape[0], offset_group, *kernel, 2, *counts)
    factors = np.ones(1) if mask is None else mask.reshape(X.shape[0], offset_group, *kernel, *counts)
    base = [
        (np.arange(n) * s - b).reshape((-1, 1) if i == 0 else (1, -1))
        + (np.arange(k) * d).reshape((k, 1, 1, 1) if i == 0 else (1, k, 1, 1))
        for i, (n, s, b, k, d) in enumerate(
            zip(counts, windows.strides, windows.before, kernel, windows.dilations, strict=True)
        )
    ]
    parts = []
    for n, g in np.ndindex(X.shape[0], offset_group):
        image = X[n].reshape(offset_group, -1, *X.shape[2:])[g]
        found = _bilinear(image, base[0] + shifts[n, g, :, :, 0], base[1] + shifts[n, g, :, :, 1], edge=False)
        parts.append(found if mask is None else found * factors[n, g])
    columns = np.stack(parts).reshape(X.shape[0], group, -1, math.prod(counts))
    out = np.matmul(W.reshape(group, W.shape[0] // group, -1)[None], columns).reshape(X.shape[0], W.shape[0], *counts)
    return (out if B is None else out + B.reshape(-1, 1, 1)).astype(X.dtype)


@kernel("onnx_roi_align", place="cpu")
def roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    coordinate_transformation_mode: str,
) -> Array:
    half = coordinate_transformation_mode == "half_pixel"
    corners = rois * spatial_scale - (0.5 if half else 0.0)
    out = np.zeros((rois.shape[0], X.shape[1], output_height, output_width), X.dtype)
    for i, (x0, y0, x1, y1) in enumerate(corners):
        width, height = (x1 - x0, y1 - y0) if half else (max(x1 - x0, 1.0), max(y1 - y0, 1.0))
        cell = height / output_height, width / output_width
        samples = [sampling_ratio if sampling_ratio > 0 else max(math.ceil(c), 1) for c in cell]
        rows = y0 + (np.arange(output_height * samples[0]) + 0.5) * cell[0] / samples[0]
        columns = x0 + (np.arange(output_width * samples[1]) + 0.5) * cell[1] / samples[1]
        grid = np.broadcast_arrays(rows[:, None], columns[None, :])
        image = X[batch_indices[i]]
        if mode == "avg":
            found = _bilinear(image, grid[0], grid[1], edge=True)
            out[i] = found.reshape(-1, output_height, samples[0], output_width, samples[1]).mean((2, 4))
        else:
            out[i] = (
                _largest_of_corners(image, grid[0], grid[1])
                .reshape(-1, output_height, samples[0], output_width, samples[1])
                .max((2, 4))
            )
    return out


def _largest_of_corners(x: Array, rows: Array, columns: Array) -> Array:
    """The largest of the four weighted neighbours of each place, as ONNX has it for the maximum."""
    height, width = x.shape[-2:]
    outside = (rows < -1) | (rows > height) | (columns < -1) | (columns > width)
    rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    found = np.full((x.shape[0], *rows.shape), -np.inf, x.dtype)
    for dy, dx in np.ndindex(2, 2):
        r, c = np.minimum(top + dy, height - 1), np.minimum(left + dx, width - 1)
        weight = (1 - np.abs(rows - (top + dy))) * (1 - np.abs(columns - (left + dx)))
        found = np.maximum(found, x[..., r, c] * weight)
    return np.where(outside, 0, found)


@kernel("onnx_grid_sample", place="cpu")
def grid_sample(X: Array, grid: Array, *, mode: str, padding_mode: str, align_corners: bool) -> Array:
    return grid_sampled(X, grid, mode, padding_mode, align_corners)


@kernel("onnx_batch_norm_training", place="cpu")
def batch_norm_training(
    X: Array,
    scale: Array,
    B: Array,
    input_mean: Array,
    input_var: Array,
    *,
    epsilon: float,
    momentum: float,
) -> tuple[Array, Array, Array]:
    axes = (0, *range(2, X.ndim))
    shape = (-1, *(1,) * (X.ndim - 2))
    mean, variance = X.mean(axes), X.var(axes)
    y = (X - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    y = y * scale.reshape(shape) + B.reshape(shape)
    before = [input_mean, input_var]
    after = [
        (old * momentum + new * (1 - momentum)).astype(old.dtype)
        for old, new in zip(before, (mean, variance), strict=True)
    ]
    return y.astype(X.dtype), *after
