"""Kernels of order statistics and of counts."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL


# pick -----------------------------------------------------------------------------------------------------------------
# Elements picked along a dim, and the gradient of that.
def picked(x: Array, places: Array, axis: int, keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """(values, places) from places along an axis, of which there is one for each row; x has one dim at least."""
    values = xp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


def pick_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, axis: int, keepdim: bool, xp: ArrayModule) -> Array:
    """Out@GRAD at the places that were picked, 0 elsewhere."""
    if not X.ndim:
        return Out_grad.reshape(()).copy()
    shape = list(X.shape)
    shape[axis] = 1
    grad = xp.zeros(X.shape, Out_grad.dtype)
    places = xp.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
    # each row was picked from once
    return xp.where(places == Indices.reshape(shape), Out_grad.reshape(shape), grad)


# bincount -------------------------------------------------------------------------------------------------------------
_MOST = 1 << 31


@kernel("bincount", place=BOTH, dtypes=REAL)
def bincount(X: Array, Weights: Array | None = None, *, minlength: int, xp: ArrayModule) -> Array:
    """Counts, or sums of weights, of each integer."""
    kind = xp.int64 if Weights is None else Weights.dtype if Weights.dtype.name == "float32" else xp.float64
    if not X.size:
        return xp.zeros(0, kind)
    x = X.astype(xp.int64)
    least, most = int(x.min()), int(x.max())
    if least < 0 or most >= _MOST:
        raise InvalidArgumentError(
            f"op bincount: X has values from {least} to {most}; expected integers from 0 to {_MOST - 1}, since Out has "
            "an element for each of them"
        )
    weights = None if Weights is None else Weights.astype(kind, copy=False)
    return xp.bincount(x, weights, minlength).astype(kind, copy=False)


# histogram ------------------------------------------------------------------------------------------------------------
@kernel("histogram", place=BOTH, dtypes=REAL)
def histogram(X: Array, *, bins: int, min: int, max: int, xp: ArrayModule) -> Array:
    """How many elements are in each bin."""
    if not X.size:
        return xp.zeros(bins, xp.int64)
    # as float64 bins of integers would not be exact beyond 2^53
    x = X.reshape(-1).astype(xp.float32 if X.dtype.itemsize == 2 and X.dtype.kind not in "iu" else X.dtype, copy=False)
    low, high = (x.min().item(), x.max().item()) if min == max == 0 else (min, max)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidArgumentError(
            f"op histogram: X (shape {list(X.shape)}) has values from {low} to {high}; expected finite ones, or a "
            "range by min and max"
        )
    if low == high:
        low, high = low - 1, high + 1
    x = x[(x >= low) & (x <= high)]
    if x.dtype.kind in "iu":
        places = (x.astype(xp.int64) - int(low)) * bins // (int(high) - int(low))
    else:
        kind = x.dtype.type
        places = ((x - kind(low)) * kind(bins) / (kind(high) - kind(low))).astype(xp.int64)
    return xp.bincount(xp.minimum(places, bins - 1), minlength=bins).astype(xp.int64, copy=False)


# kthvalue -------------------------------------------------------------------------------------------------------------
@kernel("kthvalue", place=BOTH, dtypes=REAL)
def kthvalue(X: Array, *, k: int, axis: int, keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """The k-th of the sorted elements."""
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    places = xp.argsort(X, axis=axis, kind="stable").take(xp.asarray([k - 1]), axis=axis)
    return picked(X, places, axis, keepdim, xp)


kthvalue_grad = kernel("kthvalue_grad", place=BOTH, dtypes=REAL)(pick_grad)


# mode -----------------------------------------------------------------------------------------------------------------
@kernel("mode", dtypes=REAL)
def mode(X: Array, *, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The end of the longest run in the sorted elements; of runs of one length the first."""
    if not X.ndim:
        return X.copy(), np.zeros((), np.int64)
    order = np.argsort(X, axis=axis, kind="stable")
    ordered = np.take_along_axis(X, order, axis)
    here = np.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
    first = np.broadcast_to(here == 0, X.shape)
    begins = first | (ordered != np.roll(ordered, 1, axis))
    length = here - np.maximum.accumulate(np.where(begins, here, 0), axis=axis)
    ends = np.expand_dims(np.argmax(length, axis=axis), axis)
    return picked(X, np.take_along_axis(order, ends, axis), axis, keepdim, np)


mode_grad = kernel("mode_grad", place=("cpu", "cuda"), dtypes=REAL)(pick_grad)


# nanmedian ------------------------------------------------------------------------------------------------------------
def _split(shape: tuple[int, ...], axis: list[int]) -> tuple[list[int], list[int]]:
    """The dims that stay, and those that are reduced."""
    axes = axes_of(len(shape), axis, False)
    gone = list(range(len(shape))) if axes is None else sorted(axes)
    return [i for i in range(len(shape)) if i not in gone], gone


@kernel("nanmedian", place=BOTH, dtypes=REAL)
def nanmedian(X: Array, *, axis: list[int], keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """Half the sum of both middle elements, and where they are."""
    stay, gone = _split(X.shape, axis)
    rows = X.transpose(*stay, *gone).reshape(*(X.shape[i] for i in stay), math.prod(X.shape[i] for i in gone))
    shape = tuple(1 if i in gone else n for i, n in enumerate(X.shape)) if keepdim else rows.shape[:-1]
    if not rows.shape[-1]:
        nothing = math.nan if X.dtype.kind not in "iu" else 0
        return xp.full(shape, nothing, X.dtype), xp.full((*shape, 2), -1, xp.int64)
    order = xp.argsort(rows, axis=-1, kind="stable")
    count = (rows == rows).sum(axis=-1, keepdims=True)
    middle = xp.concatenate([xp.maximum(count - 1, 0) // 2, xp.minimum(count // 2, rows.shape[-1] - 1)], axis=-1)
    places = xp.take_along_axis(order, middle, axis=-1)
    wide = xp.take_along_axis(rows, places, axis=-1).astype(xp.float64)
    median = xp.where(wide[..., 0] == wide[..., 1], wide[..., 0], wide.mean(axis=-1))
    return median.astype(X.dtype).reshape(shape), xp.where(count > 0, places, -1).reshape((*shape, 2))


@kernel("nanmedian_grad", place=BOTH, dtypes=REAL)
def nanmedian_grad(X: ShapeOnly, MedianIndex: Array, Out_grad: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    """Shares of Out@GRAD at both places."""
    stay, gone = _split(X.shape, axis)
    dims = [X.shape[i] for i in (*stay, *gone)]
    lead = dims[: len(stay)]
    places, g = MedianIndex.reshape(*lead, 2), Out_grad.reshape(*lead, 1)
    here = xp.arange(math.prod(dims[len(stay) :]))
    hits = (here == places[..., :1]).astype(xp.int64) + (here == places[..., 1:])
    rows = (g * hits.astype(g.dtype) / g.dtype.type(2)).astype(g.dtype)
    back = sorted(range(X.ndim), key=[*stay, *gone].__getitem__)
    return xp.ascontiguousarray(rows.reshape(dims).transpose(back)).reshape(X.shape)
