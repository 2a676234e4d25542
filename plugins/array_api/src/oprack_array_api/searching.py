"""Functions of the standard that search, sort, and find sets of values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_array_api._operands import axes_of, cast, constant, numel, place_of, require_tensor, together
from oprack_array_api.creation import asarray, zeros
from oprack_array_api.elementwise import not_equal
from oprack_array_api.manipulation import broadcast_arrays, concat, flip, reshape, take


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Chooses x1 where a condition holds, and x2 elsewhere; gradients flow to both.

    Args:
        condition: A tensor of bool, which broadcasts with x1 and x2.
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    x, y = together(x1, x2, "where")
    return F.where(*broadcast_arrays(require_tensor(condition, "where"), x, y))


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Finds the elements that are not 0.

    Args:
        x: A tensor.

    Returns:
        Their places, one tensor of int64 for each dim.

    Raises:
        ValueError: x has no dims.
    """
    if not x.ndim:
        raise ValueError("nonzero: a tensor without dims; expected one dim at least")
    found = F.where_index(x)
    return tuple(found[:, i] for i in range(x.ndim))


def _extremum(op: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    if not x.ndim:
        return zeros((), dtype="int64", device=place_of(x))
    if axis is None:
        found = getattr(F, op)(reshape(x, (-1,)), axis=0)
        return reshape(found, (1,) * x.ndim if keepdims else ())
    (at,) = axes_of(axis, x.ndim, op)
    shape = tuple(1 if i == at else n for i, n in enumerate(x.shape) if keepdims or i != at)
    if not numel(x) and not math.prod(shape):
        return zeros(shape, dtype="int64", device=place_of(x))
    return reshape(getattr(F, op)(x, axis=at, keepdims=keepdims), shape)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Finds the place of the greatest element along a dim, or among all.

    Args:
        x: A tensor.
        axis: The dim; None: of the flattened tensor.
        keepdims: Whether the dim stays, with size 1.

    Returns:
        Tensor of int64.
    """
    return _extremum("arg_max", require_tensor(x, "argmax"), axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Finds the place of the least element along a dim, or among all.

    Args:
        x: A tensor.
        axis: The dim; None: of the flattened tensor.
        keepdims: Whether the dim stays, with size 1.

    Returns:
        Tensor of int64.
    """
    return _extremum("arg_min", require_tensor(x, "argmin"), axis, keepdims)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where the elements of x2 would have to be put into the sorted x1, by op searchsorted.

    Args:
        x1: A tensor of one dim, sorted, or so when `sorter` gives its order.
        x2: The values.
        side: "left" for before equal elements, "right" for behind them.
        sorter: The order of x1.

    Returns:
        Places, int64, in the shape of x2.

    Raises:
        InvalidArgumentError: side is something else.
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"searchsorted: side is {side!r}; expected 'left' or 'right'")
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    x, y = together(x1, x2, "searchsorted")
    if not numel(y):
        return zeros(y.shape, dtype="int64", device=place_of(y))
    found = F.searchsorted(x, reshape(y, (-1,)), right=side == "right")
    return reshape(found, y.shape)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Finds the order that sorts the elements along a dim.

    Args:
        x: A tensor.
        axis: The dim.
        descending: Whether the largest comes first.
        stable: Whether equal elements keep their order, which they always do.

    Returns:
        Tensor of int64 of the shape of x.

    Raises:
        ValueError: x has no dims.
    """
    if not x.ndim:
        raise ValueError("argsort: a tensor without dims; expected one dim at least")
    (at,) = axes_of(axis, x.ndim, "argsort")
    if not numel(x):
        return zeros(x.shape, dtype="int64", device=place_of(x))
    if not descending:
        return F.argsort(x, axis=at).indices
    last = constant(x.shape[at] - 1, "int64", x)
    return flip(F.elementwise_sub(last, F.argsort(flip(x, axis=at), axis=at).indices), axis=at)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts the elements along a dim; gradients flow back to where they came from.

    Args:
        x: A tensor.
        axis: The dim.
        descending: Whether the largest comes first.
        stable: Whether equal elements keep their order, which they always do.

    Returns:
        Tensor of the shape and dtype of x.
    """
    (at,) = axes_of(axis, x.ndim, "sort")
    if not numel(x):
        return x.clone()
    found = F.argsort(x, axis=at).out
    return flip(found, axis=at) if descending else found


class UniqueAll(NamedTuple):
    """What unique_all returns.

    Attributes:
        values: The distinct elements in order.
        indices: Where each of them occurs first, in the flattened tensor.
        inverse_indices: Which of them each element is, in the shape of the tensor.
        counts: How often each of them occurs.
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What unique_counts returns.

    Attributes:
        values: The distinct elements in order.
        counts: How often each of them occurs.
    """

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What unique_inverse returns.

    Attributes:
        values: The distinct elements in order.
        inverse_indices: Which of them each element is, in the shape of the tensor.
    """

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements in order, where each first is, which of them each element is, and how often each is there.

    Every NaN is different from all others.
    """
    flat = reshape(require_tensor(x, "unique_all"), (-1,))
    none = zeros((0,), dtype="int64", device=place_of(x))
    if not numel(flat):
        return UniqueAll(flat, none, zeros(x.shape, dtype="int64", device=place_of(x)), none)
    order = F.argsort(flat, axis=0).indices
    ordered = take(flat, order)
    first = asarray([True], device=place_of(x))
    if numel(flat) > 1:
        first = concat([first, not_equal(ordered[1:], ordered[:-1])])
    starts = reshape(F.where_index(first), (-1,))
    counts = F.elementwise_sub(concat([starts[1:], asarray([numel(flat)], device=place_of(x))]), starts)
    group = F.elementwise_sub(F.cumsum(cast(first, "int64"), axis=0), constant(1, "int64", x))
    inverse = F.scatter(zeros(flat.shape, dtype="int64", device=place_of(x)), order, group)
    return UniqueAll(take(ordered, starts), take(order, starts), reshape(inverse, x.shape), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements in order, and how often each is there."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements in order, and which of them each element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """The different elements in order."""
    return unique_all(x).values
