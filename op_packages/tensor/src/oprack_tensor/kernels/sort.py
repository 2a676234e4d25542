"""Order along a dim, the largest, and the different ones."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_tensor.dims import product
from oprack_tensor.kernels._index import grid


# order ----------------------------------------------------------------------------------------------------------------
# Stable orders, and the adjoint of picking.
def order_of(array: Array, axis: int, descending: bool, xp: ArrayModule) -> Array:
    """Indices that sort along an axis; equals keep their order; NaN counts as the largest value."""
    if not descending:
        return xp.argsort(array, axis=axis, kind="stable")
    # sorting the reversed array and reading the result backwards keeps equals in order
    backwards = xp.flip(array, axis)
    return array.shape[axis] - 1 - xp.flip(xp.argsort(backwards, axis=axis, kind="stable"), axis)


def put_back(shape: tuple[int, ...], index: Array, values: Array, axis: int, xp: ArrayModule) -> Array:
    """Zeros of `shape` with `values` at the places `index` along an axis, each of which is named once."""
    grad = xp.zeros(shape, values.dtype)
    if not shape:
        return grad + values
    grad[grid(index, axis, xp)] = values
    return grad


# top ------------------------------------------------------------------------------------------------------------------
# The largest or smallest elements along a dim.
def top(X: Array, k: int, axis: int, largest: bool, xp: ArrayModule) -> tuple[Array, Array]:
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    axis += X.ndim if axis < 0 else 0
    index = order_of(X, axis, largest, xp)[(slice(None),) * axis + (slice(k),)]
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)


# unique ---------------------------------------------------------------------------------------------------------------
# Different values in the order of their first appearance.
def by_appearance(x: Array) -> tuple[Array, Array, Array]:
    """(different values, the place among them of each element, how often each appears)."""
    out, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return out[order], rank[inverse.reshape(-1)], counts[order]


# argsort --------------------------------------------------------------------------------------------------------------
@kernel("argsort", place=("cpu", "cuda"))
def argsort(X: Array, *, axis: int, descending: bool, xp: ArrayModule) -> tuple[Array, Array]:
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    index = order_of(X, axis, descending, xp)
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)


@kernel("argsort_grad", place=("cpu", "cuda"))
def argsort_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    return put_back(X.shape, Indices, Out_grad, axis, xp)


# searchsorted ---------------------------------------------------------------------------------------------------------
@kernel("searchsorted", place=("cpu", "cuda"))
def searchsorted(SortedSequence: Array, Values: Array, *, out_int32: bool, right: bool, xp: ArrayModule) -> Array:
    """Places in one sequence by bisection; in rows of their own by sorting rows and values together."""
    kind = xp.int32 if out_int32 else xp.int64
    if SortedSequence.ndim == 1:
        return xp.searchsorted(SortedSequence, Values, "right" if right else "left").astype(kind)
    # a stable sort keeps what comes first in front of its equals
    parts = [SortedSequence, Values] if right else [Values, SortedSequence]
    order = xp.argsort(xp.concatenate(parts, axis=-1), axis=-1, kind="stable")
    n, m = SortedSequence.shape[-1], Values.shape[-1]
    of_sequence = (order < n) if right else (order >= m)
    before = xp.cumsum(of_sequence, axis=-1)
    places = xp.argsort(order, axis=-1)  # where each element went
    mine = places[..., n:] if right else places[..., :m]
    return xp.take_along_axis(before, mine, axis=-1).astype(kind)


# top_k ----------------------------------------------------------------------------------------------------------------
@kernel("top_k", place=("cpu", "cuda"))
def top_k(X: Array, K: Array | None = None, *, k: int, xp: ArrayModule) -> tuple[Array, Array]:
    return top(X, k if K is None else int(K.reshape(-1)[0]), -1, True, xp)


@kernel("top_k_grad", place=("cpu", "cuda"))
def top_k_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return put_back(X.shape, Indices, Out_grad, -1, xp)


# top_k_v2 -------------------------------------------------------------------------------------------------------------
@kernel("top_k_v2", place=("cpu", "cuda"))
def top_k_v2(
    X: Array, K: Array | None = None, *, k: int, axis: int, largest: bool, xp: ArrayModule
) -> tuple[Array, Array]:
    return top(X, k if K is None else int(K.reshape(-1)[0]), axis, largest, xp)


@kernel("top_k_v2_grad", place=("cpu", "cuda"))
def top_k_v2_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    return put_back(X.shape, Indices, Out_grad, axis, xp)


# unique ---------------------------------------------------------------------------------------------------------------
@kernel("unique")
def unique(
    X: Array,
    *,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: list[int],
    dtype: int,
    is_sorted: bool,
) -> tuple[Array | None, ...]:
    kind = numpy_dtype(dtype)
    if not is_sorted:
        out, inverse, _ = by_appearance(X)
        return out, None, inverse.astype(kind), None
    out, first, inverse, counts = np.unique(
        X, return_index=True, return_inverse=True, return_counts=True, axis=axis[0] if axis else None
    )
    return (
        out,
        first.astype(kind) if return_index else None,
        inverse.reshape(-1).astype(kind),  # the output is always there, also in programs that do not ask for it
        counts.astype(kind) if return_counts else None,
    )


# unique_consecutive ---------------------------------------------------------------------------------------------------
@kernel("unique_consecutive", place=("cpu", "cuda"))
def unique_consecutive(
    X: Array, *, return_inverse: bool, return_counts: bool, axis: list[int], dtype: int, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """The first of each run, the number of the run of each element, and the lengths of the runs."""
    kind = xp.int32 if dtype == 2 else xp.int64
    along = axis[0] if axis else 0
    x = X if axis else X.reshape(-1)
    parts = xp.moveaxis(x, along, 0)
    rows = parts.reshape(len(parts), product(parts.shape[1:]))
    begins = xp.ones(len(parts), bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = xp.nonzero(begins)[0]
    ends = xp.concatenate([first[1:], xp.asarray([len(parts)])]) if len(first) else first
    return (
        xp.take(x, first, axis=along),
        (xp.cumsum(begins) - 1).astype(kind) if return_inverse else xp.zeros(0, kind),
        (ends - first).astype(kind) if return_counts else xp.zeros(0, kind),
    )


# unique_with_counts ---------------------------------------------------------------------------------------------------
@kernel("unique_with_counts")
def unique_with_counts(X: Array, *, dtype: int) -> tuple[Array, Array, Array]:
    """Values as they appear first, where each went, and how often it is there."""
    out, index, count = by_appearance(X)
    kind = numpy_dtype(dtype)
    return out, index.astype(kind), count.astype(kind)
