"""Kernels of sparse_transpose and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates, lookup
from oprack_sparse.kernels.shape._family import placed


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
