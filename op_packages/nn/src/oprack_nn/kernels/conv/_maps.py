"""Convolution as matrix products: the three bilinear maps of (input, filter, output) that all conv kernels use.

Arrays are channels first, [N, C, *spatial], for any number of spatial dims; filters are [K, C / groups, *ksize].
`xp` is numpy or cupy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule
from oprack.op.windows import resolve_pads
from oprack.records import dataclass

from oprack_nn.ops.conv._family import resolve_dilations

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

    def tap(self, tap: Sequence[int], out: Sequence[int]) -> tuple[slice, ...]:
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
    source = tuple(slice(max(-a, 0), max(s + min(b, 0), 0)) for s, (a, b) in sides)
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


def _channel_blocks(channels: int, per_channel: int, xp: ArrayModule) -> Iterator[slice]:
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
