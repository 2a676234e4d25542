"""Kernels of sparse_reshape and of its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates, lookup, sparse_dims
from oprack_sparse.kernels.shape._family import numbers, placed


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
