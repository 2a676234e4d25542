"""Kernels of sparse_slice and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates, lookup
from oprack_sparse.kernels.shape._family import numbers, placed


class Ranges(NamedTuple):
    """The tensors that may stand for the attributes."""

    AxesTensor: Array | None = None
    AxesTensorList: list[Array] | None = None
    StartsTensor: Array | None = None
    StartsTensorList: list[Array] | None = None
    EndsTensor: Array | None = None
    EndsTensorList: list[Array] | None = None


class Attrs(NamedTuple):
    """The attributes."""

    axes: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]


def _bounds(x: SparseTensor, tensors: Ranges, attrs: Attrs) -> tuple[Array, Array]:
    """The first index along each dim of x, and the one after the last."""
    given = (
        numbers(attrs.axes, tensors.AxesTensor, tensors.AxesTensorList),
        numbers(attrs.starts, tensors.StartsTensor, tensors.StartsTensorList),
        numbers(attrs.ends, tensors.EndsTensor, tensors.EndsTensorList),
    )
    first, last = np.zeros(len(x.shape), np.int64), np.array(x.shape, np.int64)
    for axis, start, end in zip(*given, strict=True):
        low, high, _ = slice(start, end).indices(x.shape[axis])
        first[axis], last[axis] = low, max(low, high)
    return first, last


def _kept(x: SparseTensor, first: Array, last: Array) -> tuple[Array, Array, tuple[slice, ...]]:
    """(which elements are kept, their new coordinates, the part of the dense dims)."""
    at = coordinates(x)
    low, high = first[: len(at), None], last[: len(at), None]
    keep = np.all((at >= low) & (at < high), axis=0)
    dense = tuple(slice(a, b) for a, b in zip(first[len(at) :], last[len(at) :], strict=True))
    return keep, at[:, keep] - low, dense


@kernel("sparse_slice", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_slice(x: SparseTensor, tensors: Ranges, *, ranges: Attrs) -> SparseTensor:
    """The elements within, at coordinates from the start."""
    first, last = _bounds(x, tensors, ranges)
    keep, indices, dense = _kept(x, first, last)
    values = np.ascontiguousarray(x.values[(keep, *dense)])
    return placed(x, indices, values, (last - first).tolist())


@kernel("sparse_slice_grad", dtypes=FLOATS)
def sparse_slice_grad(x: SparseTensor, tensors: Ranges, out_grad: SparseTensor, *, ranges: Attrs) -> SparseTensor:
    """The gradient of what was within; zero outside."""
    keep, indices, dense = _kept(x, *_bounds(x, tensors, ranges))
    found = np.zeros_like(x.values)
    found[(keep, *dense)] = lookup(out_grad, indices)
    return x.with_values(found)
