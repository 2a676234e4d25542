"""The loops, as numba compiles them on first use and keeps them beside this file, or in the user's cache folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]
_AT_A_TIME = 1 << 12  # numbers of a result that stay in the first cache while the rows of a filter add to them
# Products and sums may become one instruction, which rounds once; nothing else changes its order. A division by 0 is
# NumPy's: Python's, which is an error, would have to be looked for, and no loop with one would use vectors.
compiled = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


@compiled
def depthwise(
    x: Array,
    w: Array,
    offsets: Array,
    y: Array,
    first: int,
    last: int,
    per_input: int,
    pad: Any,
    stride: Any,
    size: Any,
    bias: Array,
    residual: Array,
    codes: Array,
    numbers: Array,
) -> None:
    """Planes `first` to `last` of a convolution in which each plane reads one.

    Args:
        x: [planes, height, width].
        w: [filters, taps]; plane i of y takes filter i modulo their number.
        offsets: Where each tap reads in a plane with zeros around it, as `pad_planes` makes them.
        y: [planes, height, width], which is written.
        first: Plane of y to begin with.
        last: Plane of y to end before.
        per_input: How many planes of y read one of x.
        pad: Rows above and columns to the left that are zero.
        stride: Of rows and columns.
        size: Rows and columns of what is left of a padded plane by each remainder of the strides.
        bias: A number for each filter, or none at all.
        residual: Like y, or empty.
        codes: The post-ops, as `finish` takes them.
        numbers: Theirs.
    """
    filters = w.shape[0]
    _, oh, ow = y.shape
    tall, wide = size
    padded = np.zeros((stride[0], stride[1], tall * wide), x.dtype)
    flat, rows = padded.reshape(-1), max(1, _AT_A_TIME // wide)
    total, out = np.empty(rows * wide, x.dtype), y.reshape(-1)
    for plane in range(first, last):
        f = w[plane % filters]
        added = bias[plane % filters] if bias.size else x.dtype.type(0)
        _sort(x[plane // per_input], padded, wide, pad, stride)
        for r0 in range(0, oh, rows):
            count = min(rows, oh - r0)
            part = total[: (count - 1) * wide + ow]
            part[:] = added
            _add_taps(flat, offsets, r0 * wide, f, part)
            begin = (plane * oh + r0) * ow
            for i in range(count):
                out[begin + i * ow : begin + (i + 1) * ow] = total[i * wide : i * wide + ow]
            if codes.size:
                finish(out, residual, begin, begin + count * ow, codes, numbers)


@compiled
def _add_taps(x: Array, offsets: Array, at: int, f: Array, y: Array) -> None:
    """As many taps at a time as registers can hold: nine, five, or one."""
    t, taps = 0, f.shape[0]
    while t < taps:
        o = offsets[t:] + at
        if taps % 9 == 0:
            _add_nine(x, o, f[t : t + 9], y)
            t += 9
        elif taps - t >= 5:
            _add_five(x, o, f[t : t + 5], y)
            t += 5
        else:
            factor, source = f[t], x[o[0] : o[0] + y.shape[0]]
            for j in range(y.shape[0]):
                y[j] += factor * source[j]
            t += 1


@compiled
def _add_nine(x: Array, o: Array, f: Array, y: Array) -> None:
    n = y.shape[0]
    x0, x1, x2 = x[o[0] : o[0] + n], x[o[1] : o[1] + n], x[o[2] : o[2] + n]
    x3, x4, x5 = x[o[3] : o[3] + n], x[o[4] : o[4] + n], x[o[5] : o[5] + n]
    x6, x7, x8 = x[o[6] : o[6] + n], x[o[7] : o[7] + n], x[o[8] : o[8] + n]
    a, b, c, d, e, g, h, i, k = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
    for j in range(n):
        left = a * x0[j] + b * x1[j] + c * x2[j] + d * x3[j]
        y[j] += left + e * x4[j] + g * x5[j] + h * x6[j] + i * x7[j] + k * x8[j]


@compiled
def _add_five(x: Array, o: Array, f: Array, y: Array) -> None:
    n, a, b, c, d, e = y.shape[0], f[0], f[1], f[2], f[3], f[4]
    x0, x1, x2 = x[o[0] : o[0] + n], x[o[1] : o[1] + n], x[o[2] : o[2] + n]
    x3, x4 = x[o[3] : o[3] + n], x[o[4] : o[4] + n]
    for j in range(n):
        y[j] += a * x0[j] + b * x1[j] + c * x2[j] + d * x3[j] + e * x4[j]


@compiled
def spread(
    product: Array,
    y: Array,
    first: int,
    last: int,
    width: int,
    bias: Array,
    residual: Array,
    codes: Array,
    numbers: Array,
) -> None:
    """Planes `first` to `last` of a transposed convolution whose windows lie side by side.

    Args:
        product: [planes, rows of a window, columns of a window, numbers of x].
        y: [planes, height, width], which is written.
        first: Plane of y to begin with.
        last: Plane of y to end before.
        width: Of x.
        bias: A number for each filter, or none at all.
        residual: Like y, or empty.
        codes: The post-ops, as `finish` takes them.
        numbers: Theirs.
    """
    _, kh, kw, size = product.shape
    flat, each = y.reshape(-1), y.shape[1] * y.shape[2]
    for plane in range(first, last):
        added = bias[plane % bias.size] if bias.size else y.dtype.type(0)
        for i in range(size // width):
            for a in range(kh):
                row = y[plane, i * kh + a]
                for b in range(kw):
                    source = product[plane, a, b, i * width : (i + 1) * width]
                    for j in range(width):
                        row[j * kw + b] = source[j] + added
        finish(flat, residual, plane * each, (plane + 1) * each, codes, numbers)


@compiled
def pad_planes(x: Array, padded: Array, first: int, last: int, pad: Any, wide: int) -> None:
    """Planes `first` to `last` of x [planes, height, width] with zeros around, as `depthwise` has them.

    padded: [planes, stride of rows, stride of columns, numbers], rows of `wide` numbers; it is written.
    """
    _, sh, sw, _ = padded.shape
    for plane in range(first, last):
        padded[plane] = 0
        _sort(x[plane], padded[plane], wide, pad, (sh, sw))


@compiled
def product_of_taps(
    padded: Array,
    offsets: Array,
    fours: Array,
    others: Array,
    y: Array,
    rows: int,
    wide: int,
    first: int,
    last: int,
    bias: Array,
    residual: Array,
    codes: Array,
    numbers: Array,
) -> None:
    """Bands `first` to `last` of rows of a convolution that adds up channels.

    A number of the result is a sum of what all taps read times their weights; what a tap reads for a band lies one
    behind the other. Four filters and four taps at a time are what the registers of all CPUs hold.

    Args:
        padded: [images, numbers].
        offsets: Where each tap of each channel reads in an image.
        fours: [filters / 4, taps / 4, 4, 4]: weights of filters and taps, but for those of the last taps.
        others: [filters / 4, taps left, 4]: these.
        y: [images, filters, height, width], which is written.
        rows: Rows of a band.
        wide: Numbers between what two rows read.
        first: Band to begin with; an image has as many as its rows need.
        last: Band to end before.
        bias: A number for each filter, or none at all.
        residual: Like y, or empty.
        codes: The post-ops, as `finish` takes them.
        numbers: Theirs.
    """
    _, filters, oh, ow = y.shape
    _, groups, _, _ = fours.shape
    bands = (oh + rows - 1) // rows
    total = np.empty((4, rows * wide), y.dtype)
    flat = y.reshape(-1)
    for band in range(first, last):
        image, r0 = band // bands, band % bands * rows
        x, at, count = padded[image], r0 * wide, min(rows, oh - r0)
        n = (count - 1) * wide + ow
        y0, y1, y2, y3 = total[0, :n], total[1, :n], total[2, :n], total[3, :n]
        for k in range(0, filters, 4):
            total[:, :n] = 0
            for g in range(groups):
                o = offsets[4 * g : 4 * g + 4] + at
                x0, x1 = x[o[0] : o[0] + n], x[o[1] : o[1] + n]
                _add_sixteen(x0, x1, x[o[2] : o[2] + n], x[o[3] : o[3] + n], fours[k // 4, g], y0, y1, y2, y3)
            for t in range(others.shape[1]):
                o0 = offsets[4 * groups + t] + at
                _add_four(x[o0 : o0 + n], others[k // 4, t], y0, y1, y2, y3)
            for f in range(k, min(k + 4, filters)):
                added = bias[f] if bias.size else y.dtype.type(0)
                begin = ((image * filters + f) * oh + r0) * ow
                for i in range(count):
                    target = flat[begin + i * ow : begin + (i + 1) * ow]
                    source = total[f - k, i * wide : i * wide + ow]
                    for j in range(ow):
                        target[j] = source[j] + added
                if codes.size:
                    finish(flat, residual, begin, begin + count * ow, codes, numbers)


@compiled
def _add_sixteen(
    x0: Array, x1: Array, x2: Array, x3: Array, w: Array, y0: Array, y1: Array, y2: Array, y3: Array
) -> None:
    a0, a1, a2, a3 = w[0, 0], w[0, 1], w[0, 2], w[0, 3]
    b0, b1, b2, b3 = w[1, 0], w[1, 1], w[1, 2], w[1, 3]
    c0, c1, c2, c3 = w[2, 0], w[2, 1], w[2, 2], w[2, 3]
    d0, d1, d2, d3 = w[3, 0], w[3, 1], w[3, 2], w[3, 3]
    for j in range(y0.shape[0]):
        p, q, r, s = x0[j], x1[j], x2[j], x3[j]
        y0[j] += a0 * p + a1 * q + a2 * r + a3 * s
        y1[j] += b0 * p + b1 * q + b2 * r + b3 * s
        y2[j] += c0 * p + c1 * q + c2 * r + c3 * s
        y3[j] += d0 * p + d1 * q + d2 * r + d3 * s


@compiled
def _add_four(x: Array, w: Array, y0: Array, y1: Array, y2: Array, y3: Array) -> None:
    a, b, c, d = w[0], w[1], w[2], w[3]
    for j in range(x.shape[0]):
        p = x[j]
        y0[j] += a * p
        y1[j] += b * p
        y2[j] += c * p
        y3[j] += d * p


@compiled
def add_rows(
    y: Array, at: int, size: int, each: int, bias: Array, residual: Array, codes: Array, numbers: Array, filters: int
) -> None:
    """What follows a product: some places of each row get the row's bias, and the post-ops.

    Args:
        y: The rows of an array, one behind the other, which are written.
        at: Where the places of the first row begin.
        size: How many places of a row there are.
        each: Numbers of a row.
        bias: A number for each row, or none at all.
        residual: Like y, or empty.
        codes: The post-ops, as `finish` takes them.
        numbers: Theirs.
        filters: How many rows there are.
    """
    for k in range(filters):
        begin = at + k * each
        if bias.size:
            target, added = y[begin : begin + size], bias[k]
            for j in range(size):
                target[j] += added
        finish(y, residual, begin, begin + size, codes, numbers)


RESIDUAL, RELU, CLIP, LEAKY, HARD_SWISH, HARD_SIGMOID, LINEAR = range(7)
"""Post-ops that `finish` knows."""


@compiled
def finish(y: Array, residual: Array, first: int, last: int, codes: Array, numbers: Array) -> None:
    """Apply post-ops to elements `first` to `last` of y, of one dim, a part at a time that stays in the first cache.

    Args:
        y: The array, which is written to.
        residual: Like y, or empty; what RESIDUAL adds.
        first: Element to begin with.
        last: Element to end before.
        codes: The post-ops.
        numbers: [post-ops, 3]: what each has for numbers. NaN stays NaN.
    """
    for begin in range(first, last, _AT_A_TIME):
        # a part of its own, whose indices can't be negative: numba would look at each of them
        part = y[begin : min(begin + _AT_A_TIME, last)]
        for i in range(codes.size):
            code, a, b, c = codes[i], numbers[i, 0], numbers[i, 1], numbers[i, 2]
            if code == RESIDUAL:
                _add(part, residual[begin : begin + part.size])
            elif code == LEAKY or code == RELU:
                _leak(part, a)  # by nothing
            elif code == HARD_SWISH:
                _hard_swish(part, a, b, c)
            else:
                if code != CLIP:
                    _linear(part, a, b)
                if code != LINEAR:
                    _clip(part, a if code == CLIP else y.dtype.type(1))


@compiled
def _add(part: Array, more: Array) -> None:
    for j in range(part.size):
        part[j] += more[j]


@compiled
def _leak(part: Array, slope: Any) -> None:
    zero = part.dtype.type(0)
    for j in range(part.size):
        v = part[j]
        part[j] = (v * slope if slope else zero) if v < zero else v


@compiled
def _clip(part: Array, most: Any) -> None:
    zero = part.dtype.type(0)
    for j in range(part.size):
        v = part[j]
        v = zero if v < zero else v
        part[j] = most if v > most else v


@compiled
def _linear(part: Array, factor: Any, bias: Any) -> None:
    for j in range(part.size):
        part[j] = factor * part[j] + bias


@compiled
def _hard_swish(part: Array, threshold: Any, scale: Any, offset: Any) -> None:
    zero = part.dtype.type(0)
    for j in range(part.size):
        v = part[j] + offset
        v = zero if v < zero else v
        part[j] *= (threshold if v > threshold else v) / scale


@compiled
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


@compiled
def hard_swish(x: Array, y: Array, first: int, last: int, threshold: Any, scale: Any, offset: Any) -> None:
    """Elements `first` to `last` of hard_swish, of arrays of one dim."""
    for begin in range(first, last, _AT_A_TIME):
        end = min(begin + _AT_A_TIME, last)
        y[begin:end] = x[begin:end]
        _hard_swish(y[begin:end], threshold, scale, offset)
