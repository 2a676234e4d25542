"""The loops, as numba compiles them on first use and keeps them beside this file, or in the user's cache folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]
# products and sums may become one instruction, which rounds once; nothing else changes its order
_AT_A_TIME = 1 << 12  # numbers of a result that stay in the first cache while the rows of a filter add to them
_compiled = njit(nogil=True, cache=True, fastmath={"contract"})


@_compiled
def depthwise(
    x: Array, w: Array, y: Array, first: int, last: int, per_input: int, pad: Any, stride: Any, dilation: Any
) -> None:
    """Planes `first` to `last` of a convolution in which each plane reads one.

    Args:
        x: [planes, height, width].
        w: [filters, height, width]; plane i of y takes filter i modulo their number.
        y: [planes, height, width], which is written.
        first: Plane of y to begin with.
        last: Plane of y to end before.
        per_input: How many planes of y read one of x.
        pad: Rows above and columns to the left that are zero.
        stride: Of rows and columns.
        dilation: Of rows and columns.
    """
    filters, kh, kw = w.shape
    _, height, width = x.shape
    _, oh, ow = y.shape
    # A plane of x with zeros around it, its rows and columns sorted by what is left when they are divided by the
    # stride: what one tap of the filter reads lies one behind the other then, but for a few columns more.
    tall = max(height + pad[0], (oh - 1) * stride[0] + (kh - 1) * dilation[0] + 1)
    wide = max(width + pad[1], (ow - 1) * stride[1] + (kw - 1) * dilation[1] + 1)
    tall, wide = (tall + stride[0] - 1) // stride[0], (wide + stride[1] - 1) // stride[1]
    padded = np.zeros((stride[0], stride[1], tall * wide), x.dtype)
    rows = max(1, _AT_A_TIME // wide)
    total = np.empty(rows * wide, x.dtype)
    for plane in range(first, last):
        f = w[plane % filters]
        _sort(x[plane // per_input], padded, wide, pad, stride)
        for r0 in range(0, oh, rows):
            count = min(rows, oh - r0)
            part = total[: (count - 1) * wide + ow]
            for a in range(kh):
                row = a * dilation[0]
                band = padded[row % stride[0]]
                at = (row // stride[0] + r0) * wide
                if kw == 3:
                    _add_three(band, at, f[a], part, dilation[1], a == 0)
                elif kw == 5:
                    _add_five(band, at, f[a], part, dilation[1], a == 0)
                else:
                    _add_any(band, at, f[a], part, dilation[1], a == 0)
            for i in range(count):
                y[plane, r0 + i, :] = total[i * wide : i * wide + ow]


@_compiled
def _sort(source: Array, padded: Array, wide: int, pad: Any, stride: Any) -> None:
    """Copy a plane to where `depthwise` reads it; what is zero stays so."""
    for i in range(source.shape[0]):
        row = i + pad[0]
        target = padded[row % stride[0]]
        for phase in range(stride[1]):
            begin = (phase - pad[1]) % stride[1]  # the first column that belongs to it
            columns = source[i, begin :: stride[1]]
            at = row // stride[0] * wide + (begin + pad[1]) // stride[1]
            target[phase, at : at + columns.shape[0]] = columns


@_compiled
def _read_by(band: Array, at: int, column: int, count: int) -> Array:
    """What a tap reads: memory without gaps, as the compiler has to know."""
    phases = band.shape[0]
    return band[column % phases, at + column // phases : at + column // phases + count]


@_compiled
def _add_three(band: Array, at: int, f: Array, y: Array, dilation: int, begins: bool) -> None:
    n, f0, f1, f2 = y.shape[0], f[0], f[1], f[2]
    r0, r1 = _read_by(band, at, 0, n), _read_by(band, at, dilation, n)
    r2 = _read_by(band, at, 2 * dilation, n)
    for j in range(n):
        total = f0 * r0[j] + f1 * r1[j] + f2 * r2[j]
        y[j] = total if begins else y[j] + total


@_compiled
def _add_five(band: Array, at: int, f: Array, y: Array, dilation: int, begins: bool) -> None:
    n, f0, f1, f2, f3, f4 = y.shape[0], f[0], f[1], f[2], f[3], f[4]
    r0, r1 = _read_by(band, at, 0, n), _read_by(band, at, dilation, n)
    r2, r3 = _read_by(band, at, 2 * dilation, n), _read_by(band, at, 3 * dilation, n)
    r4 = _read_by(band, at, 4 * dilation, n)
    for j in range(n):
        total = f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j] + f4 * r4[j]
        y[j] = total if begins else y[j] + total


@_compiled
def _add_any(band: Array, at: int, f: Array, y: Array, dilation: int, begins: bool) -> None:
    if begins:
        y[:] = 0
    for b in range(f.shape[0]):
        factor, r = f[b], _read_by(band, at, b * dilation, y.shape[0])
        for j in range(y.shape[0]):
            y[j] += factor * r[j]


@_compiled
def hard_swish(x: Array, y: Array, first: int, last: int, threshold: Any, scale: Any, offset: Any) -> None:
    """Elements `first` to `last` of hard_swish, of arrays of one dim."""
    # parts of their own, whose indices can't be negative: numba would look at each of them
    x, y, zero = x[first:last], y[first:last], x.dtype.type(0)
    for i in range(x.shape[0]):
        y[i] = min(max(x[i] + offset, zero), threshold) / scale * x[i]
