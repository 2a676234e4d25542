"""Padding by a constant or by elements of the array itself, and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule

from oprack_nn.kernels.resize._resample import resample_adjoint

PLACES = ("cpu", "cuda")


def filled(x: Array, pairs: Sequence[tuple[int, int]], value: float, xp: ArrayModule) -> Array:
    """x with `value` around it; pairs: (before, after) per dim."""
    out = xp.full(tuple(s + a + b for s, (a, b) in zip(x.shape, pairs, strict=True)), value, x.dtype)
    out[inner(x.shape, pairs)] = x
    return out


def inner(shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Where in the padded array the array itself lies."""
    return tuple(slice(a, a + s) for s, (a, _) in zip(shape, pairs, strict=True))


def _sources(size: int, pair: tuple[int, int], mode: str) -> Array:
    """Which element of a dim each element of the padded dim copies."""
    i = np.arange(-pair[0], size + pair[1])
    if mode == "circular":
        return i % size
    if mode == "reflect":
        i = np.abs(i)
        return np.where(i >= size, 2 * (size - 1) - i, i)
    return np.clip(i, 0, size - 1)


def padded(x: Array, pairs: Sequence[tuple[int, int]], first: int, mode: str, value: float, xp: ArrayModule) -> Array:
    """x with its dims from `first` on padded by one pair each."""
    if mode == "constant":
        return filled(x, [(0, 0)] * first + pairs + [(0, 0)] * (x.ndim - first - len(pairs)), value, xp)
    for axis, pair in enumerate(pairs, first):
        if any(pair):
            x = x.take(constant(_sources(x.shape[axis], pair, mode), xp), axis=axis)
    return x if any(map(any, pairs)) else x.copy()


def pad_adjoint(
    y: Array, pairs: Sequence[tuple[int, int]], first: int, mode: str, shape: tuple[int, ...], xp: ArrayModule
) -> Array:
    """The adjoint of padded, to an array of `shape`."""
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
