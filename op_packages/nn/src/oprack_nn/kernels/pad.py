"""Kernels of padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, RequiredArray, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES, COMPLEX, FLOATS

from oprack_nn.kernels.resize import numbers, resample_adjoint
from oprack_nn.ops.pad import first_spatial_axis, pairs_2d, pairs_3d

# shared ---------------------------------------------------------------------------------------------------------------
# Padding by a constant or by elements of the array itself, and its adjoint.
PLACES = ("cpu", "cuda")


class Pads(NamedTuple):
    """Attributes of pad2d and pad3d besides the value."""

    paddings: list[int]
    mode: str
    data_format: str

    def of(
        self, tensor: Array | None, pairs: Callable[[Sequence[int]], list[tuple[int, int]]]
    ) -> tuple[list[tuple[int, int]], int, str]:
        """(pairs, first dim, mode) as padded takes them; the tensor's paddings count if there is one."""
        return pairs(numbers(tensor) or self.paddings), first_spatial_axis(self.data_format), self.mode


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


def padded(x: Array, pairs: list[tuple[int, int]], first: int, mode: str, value: float, xp: ArrayModule) -> Array:
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


# pad ------------------------------------------------------------------------------------------------------------------
@kernel("pad", place=PLACES, dtypes=ALL_DTYPES)
def pad(X: Array, *, paddings: list[int], pad_value: float, xp: ArrayModule) -> Array:
    return filled(X, list(zip(paddings[::2], paddings[1::2], strict=True)), pad_value, xp)


@kernel("pad_grad", place=PLACES, dtypes=ALL_DTYPES)
def pad_grad(Out_grad: Array, *, paddings: list[int]) -> Array:
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    shape = [s - a - b for s, (a, b) in zip(Out_grad.shape, pairs, strict=True)]
    return Out_grad[inner(shape, pairs)].copy()


# pad2d ----------------------------------------------------------------------------------------------------------------
@kernel("pad2d", place=PLACES, dtypes=ALL_DTYPES)
def pad2d(X: Array, Paddings: Array | None = None, *, attrs: Pads, pad_value: float, xp: ArrayModule) -> Array:
    return padded(X, *attrs.of(Paddings, pairs_2d), pad_value, xp)


@kernel("pad2d_grad", place=PLACES, dtypes=FLOATS)
def pad2d_grad(
    X: ShapeOnly, Paddings: Array | None = None, Out_grad: RequiredArray = None, *, attrs: Pads, xp: ArrayModule
) -> Array:
    return pad_adjoint(Out_grad, *attrs.of(Paddings, pairs_2d), X.shape, xp)


# pad3d ----------------------------------------------------------------------------------------------------------------
@kernel("pad3d", place=PLACES, dtypes=ALL_DTYPES)
def pad3d(X: Array, Paddings: Array | None = None, *, attrs: Pads, value: float, xp: ArrayModule) -> Array:
    return padded(X, *attrs.of(Paddings, pairs_3d), value, xp)


@kernel("pad3d_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_grad(
    X: ShapeOnly, Paddings: Array | None = None, Out_grad: RequiredArray = None, *, attrs: Pads, xp: ArrayModule
) -> Array:
    return pad_adjoint(Out_grad, *attrs.of(Paddings, pairs_3d), X.shape, xp)


@kernel("pad3d_double_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_double_grad(
    Paddings: Array | None = None, grad_x_grad: RequiredArray = None, *, attrs: Pads, xp: ArrayModule
) -> Array:
    return padded(grad_x_grad, *attrs.of(Paddings, pairs_3d), 0, xp)


# pad_constant_like ----------------------------------------------------------------------------------------------------
def _pairs(small: tuple[int, ...], large: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(0, b - a) for a, b in zip(small, large, strict=True)]


@kernel("pad_constant_like", place=PLACES, dtypes=ALL_DTYPES)
def pad_constant_like(X: ShapeOnly, Y: Array, *, pad_value: float, xp: ArrayModule) -> Array:
    """Y, filled up behind."""
    return filled(Y, _pairs(Y.shape, X.shape), pad_value, xp)


@kernel("pad_constant_like_grad", place=PLACES, dtypes=ALL_DTYPES)
def pad_constant_like_grad(Y: ShapeOnly, Out_grad: Array) -> Array:
    """The part of Y."""
    return Out_grad[inner(list(Y.shape), _pairs(Y.shape, Out_grad.shape))].copy()
