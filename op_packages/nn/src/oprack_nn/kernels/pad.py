"""Kernels of pad, pad2d, pad3d and their gradients."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.kernel import kernel
from oprack.types import ALL_DTYPES, COMPLEX, FLOATS

from oprack_nn.kernels._interp import numbers, resample_adjoint
from oprack_nn.ops._pad_spatial import first_spatial_axis, pairs_2d, pairs_3d

_PLACES = ("cpu", "cuda")


def _constant(x, pairs, value, xp):
    """x with `value` around it; pairs: (before, after) per dim."""
    out = xp.full(tuple(s + a + b for s, (a, b) in zip(x.shape, pairs, strict=True)), value, x.dtype)
    out[_inner(x.shape, pairs)] = x
    return out


def _inner(shape, pairs):
    return tuple(slice(a, a + s) for s, (a, _) in zip(shape, pairs, strict=True))


def _sources(size, pair, mode):
    """Which element of a dim each element of the padded dim copies."""
    i = np.arange(-pair[0], size + pair[1])
    if mode == "circular":
        return i % size
    if mode == "reflect":
        i = np.abs(i)
        return np.where(i >= size, 2 * (size - 1) - i, i)
    return np.clip(i, 0, size - 1)


def _pad(x, pairs, first, mode, value, xp):
    if mode == "constant":
        return _constant(x, [(0, 0)] * first + pairs + [(0, 0)] * (x.ndim - first - len(pairs)), value, xp)
    for axis, pair in enumerate(pairs, first):
        if any(pair):
            x = x.take(constant(_sources(x.shape[axis], pair, mode), xp), axis=axis)
    return x if any(map(any, pairs)) else x.copy()


def _pad_adjoint(y, pairs, first, mode, shape, xp):
    for axis, pair in enumerate(pairs, first):
        if not any(pair):
            continue
        size, lead = shape[axis], (slice(None),) * axis
        sources = _sources(size, pair, mode)
        part = y[(*lead, slice(pair[0], pair[0] + size))]
        if mode != "constant":
            part = part.copy()
            for border in (slice(0, pair[0]), slice(pair[0] + size, None)):
                if sources[border].size:
                    part += resample_adjoint(y[(*lead, border)], axis, size, sources[border][None], None, xp)
        y = part
    return y if any(map(any, pairs)) and mode != "constant" else y.copy()


@kernel("pad", place=_PLACES, dtypes=ALL_DTYPES)
def pad(X, *, paddings, pad_value, xp):
    return _constant(X, list(zip(paddings[::2], paddings[1::2], strict=True)), pad_value, xp)


@kernel("pad_grad", place=_PLACES, dtypes=ALL_DTYPES)
def pad_grad(Out_grad, *, paddings):
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    shape = [s - a - b for s, (a, b) in zip(Out_grad.shape, pairs, strict=True)]
    return Out_grad[_inner(shape, pairs)].copy()


@kernel("pad2d", place=_PLACES, dtypes=ALL_DTYPES)
def pad2d(X, Paddings=None, *, paddings, mode, pad_value, data_format, xp):
    return _pad(X, pairs_2d(numbers(Paddings) or paddings), first_spatial_axis(data_format), mode, pad_value, xp)


@kernel("pad2d_grad", place=_PLACES, dtypes=FLOATS)
def pad2d_grad(X, Paddings=None, Out_grad=None, *, paddings, mode, data_format, xp):
    pairs = pairs_2d(numbers(Paddings) or paddings)
    return _pad_adjoint(Out_grad, pairs, first_spatial_axis(data_format), mode, X.shape, xp)


@kernel("pad3d", place=_PLACES, dtypes=ALL_DTYPES)
def pad3d(X, Paddings=None, *, paddings, mode, value, data_format, xp):
    return _pad(X, pairs_3d(numbers(Paddings) or paddings), first_spatial_axis(data_format), mode, value, xp)


@kernel("pad3d_grad", place=_PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_grad(X, Paddings=None, Out_grad=None, *, paddings, mode, data_format, xp):
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return _pad_adjoint(Out_grad, pairs, first_spatial_axis(data_format), mode, X.shape, xp)


@kernel("pad3d_double_grad", place=_PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_double_grad(Paddings=None, grad_x_grad=None, *, paddings, mode, data_format, xp):
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return _pad(grad_x_grad, pairs, first_spatial_axis(data_format), mode, 0, xp)
