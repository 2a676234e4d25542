"""Kernels of ops that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates, csr_of, in_order, lookup, sparse_dims


# shared ---------------------------------------------------------------------------------------------------------------
# What kernels that move elements share.
def placed(x: SparseTensor, indices: Array, values: Array, shape: Sequence[int]) -> SparseTensor:
    """Elements at new coordinates: in COO in the order given, in CSR sorted."""
    if isinstance(x, SparseCsrTensor):
        order = in_order(indices, shape)
        return csr_of(indices[:, order], values[order], shape)
    assert isinstance(x, SparseCooTensor)
    return SparseCooTensor(indices.astype(x.indices.dtype, copy=False), values, shape, check=False)


def numbers(attribute: Sequence[int], tensor: Array | None, tensors: Sequence[Array] | None) -> list[int]:
    """The numbers of an attribute for which tensors may stand."""
    if tensor is not None:
        return [int(v) for v in np.asarray(tensor).reshape(-1)]
    return [int(np.asarray(t).reshape(-1)[0]) for t in tensors] if tensors else list(attribute)


# sparse_reshape -------------------------------------------------------------------------------------------------------
def _moved(x: SparseTensor, shape: Sequence[int]) -> Array:
    """Coordinates of the elements of x in another shape, which has x's dense dims."""
    dims = sparse_dims(x)
    dense = len(x.shape) - len(dims)
    target = tuple(shape[: len(shape) - dense])
    if tuple(shape[len(target) :]) != x.shape[len(dims) :] or math.prod(target) != math.prod(dims):
        raise InvalidArgumentError(
            f"sparse_reshape: shape is {list(shape)} for {x!r} with {dense} dense dims; expected these unchanged"
        )
    if x.nnz == 0:
        return np.zeros((len(target), 0), np.int64)
    if math.prod(dims) >= 1 << 62:
        raise InvalidArgumentError(f"sparse_reshape: {x!r} has more elements than int64 can count; expected fewer")
    return np.stack(np.unravel_index(np.ravel_multi_index(tuple(coordinates(x)), dims), target)).astype(np.int64)


@kernel("sparse_reshape", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_reshape(
    x: SparseTensor,
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: Sequence[int],
) -> SparseTensor:
    """The elements at the same places in row-major order."""
    given = [x.shape[i] if d == 0 else d for i, d in enumerate(numbers(shape, ShapeTensor, ShapeTensorList))]
    rest = math.prod(d for d in given if d != -1)
    target = [math.prod(x.shape) // max(rest, 1) if d == -1 else d for d in given]
    return placed(x, _moved(x, target), x.values.copy(), target)


@kernel("sparse_reshape_grad", dtypes=FLOATS)
def sparse_reshape_grad(x: SparseTensor, out_grad: SparseTensor) -> SparseTensor:
    """The gradient of each element from where it went."""
    return x.with_values(lookup(out_grad, _moved(x, out_grad.shape)))


# sparse_slice ---------------------------------------------------------------------------------------------------------
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


# sparse_transpose -----------------------------------------------------------------------------------------------------
def _dims(x: SparseTensor, perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """(order of the sparse dims, order of the values' dims)."""
    count = len(coordinates(x))
    order = [p % len(x.shape) for p in perm]
    if any(p >= count for p in order[:count]):
        raise InvalidArgumentError(
            f"sparse_transpose: perm is {list(perm)} for {x!r} with {count} sparse dims; expected the dense dims "
            "behind them, since a dense dim can't become sparse"
        )
    return order[:count], [0, *(p - count + 1 for p in order[count:])]


@kernel("sparse_transpose", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_transpose(x: SparseTensor, *, perm: Sequence[int]) -> SparseTensor:
    """Coordinates in another order."""
    order, of_values = _dims(x, perm)
    shape = [x.shape[p] for p in perm]
    return placed(x, coordinates(x)[order], x.values.transpose(of_values).copy(), shape)


@kernel("sparse_transpose_grad", dtypes=FLOATS)
def sparse_transpose_grad(x: SparseTensor, out_grad: SparseTensor, *, perm: Sequence[int]) -> SparseTensor:
    """The gradient of each element from where it went."""
    order, of_values = _dims(x, perm)
    found = lookup(out_grad, coordinates(x)[order])
    return x.with_values(found.transpose(np.argsort(of_values)).copy())
