"""Kernels of sparse_maxpool and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at
from oprack_sparse.kernels.nn._windows import pairs, summed


@kernel("sparse_maxpool", dtypes=FLOATS)
def sparse_maxpool(
    x: SparseCooTensor,
    *,
    kernel_sizes: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
) -> tuple[SparseCooTensor, Array, Array]:
    """The largest of the points in each window."""
    found = pairs(x, kernel_sizes, paddings, strides, dilations)
    _, point, target = found.rulebook
    order = np.argsort(target, kind="stable")
    first = np.flatnonzero(np.diff(target[order], prepend=-1))
    values = x.values[point[order]]
    values = np.maximum.reduceat(values, first, axis=0) if len(first) else values
    space = [
        (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(x.shape[1:-1], kernel_sizes, paddings, strides, dilations, strict=True)
    ]
    indices = found.indices.astype(x.indices.dtype)
    out = SparseCooTensor(indices, values, (x.shape[0], *space, x.shape[-1]), check=False)
    return out, found.rulebook, found.counter


@kernel("sparse_maxpool_grad", dtypes=FLOATS)
def sparse_maxpool_grad(
    x: SparseCooTensor, out: SparseCooTensor, rulebook: Array, out_grad: SparseCooTensor
) -> SparseCooTensor:
    """The gradient of each window for the points that are its maximum."""
    _, point, target = rulebook
    chosen = x.values[point] == out.values[target]
    return x.with_values(summed(values_at(out_grad, out)[target] * chosen, point, x.nnz))
