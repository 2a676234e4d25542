"""Kernels of sparse_conv3d and of its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array
from oprack.kernel import kernel as declared
from oprack.tensor import SparseCooTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at
from oprack_sparse.kernels.nn._windows import by_place, pairs, summed


def _places(kernel: Array) -> tuple[Array, int]:
    """(matrices [places, C, O], how many)."""
    count = math.prod(kernel.shape[:-2])
    return kernel.reshape(count, *kernel.shape[-2:]), count


@declared("sparse_conv3d", dtypes=FLOATS)
def sparse_conv3d(
    x: SparseCooTensor,
    kernel: Array,
    *,
    paddings: Sequence[int],
    dilations: Sequence[int],
    strides: Sequence[int],
    subm: bool,
) -> tuple[SparseCooTensor, Array, Array]:
    """One product of matrices for each place in the kernel."""
    found = pairs(x, kernel.shape[:-2], paddings, strides, dilations, subm=subm)
    weights, count = _places(kernel)
    _, point, target = found.rulebook
    products = np.empty((len(point), kernel.shape[-1]), x.values.dtype)
    for weight, part in zip(weights, by_place(found.rulebook, count), strict=True):
        products[part] = x.values[point[part]] @ weight
    values = summed(products, target, found.indices.shape[1])
    # the dims of space: those of x, or as many places as the windows have
    space = (
        x.shape[1:-1]
        if subm
        else [
            (d + 2 * p - e * (k - 1) - 1) // s + 1
            for d, k, p, s, e in zip(x.shape[1:-1], kernel.shape, paddings, strides, dilations, strict=False)
        ]
    )
    indices = found.indices.astype(x.indices.dtype)
    out = SparseCooTensor(indices, values, (x.shape[0], *space, kernel.shape[-1]), check=False)
    return out, found.rulebook, found.counter


@declared("sparse_conv3d_grad", dtypes=FLOATS)
def sparse_conv3d_grad(
    x: SparseCooTensor, kernel: Array, out: SparseCooTensor, rulebook: Array, out_grad: SparseCooTensor
) -> tuple[SparseCooTensor, Array]:
    """By the points and by the kernel."""
    weights, count = _places(kernel)
    gradient = values_at(out_grad, out)
    _, point, target = rulebook
    products = np.empty((len(point), x.values.shape[-1]), x.values.dtype)
    by_kernel = np.zeros_like(weights)
    for k, part in enumerate(by_place(rulebook, count)):
        arrived = gradient[target[part]]
        products[part] = arrived @ weights[k].T
        by_kernel[k] = x.values[point[part]].T @ arrived
    return x.with_values(summed(products, point, x.nnz)), by_kernel.reshape(kernel.shape)
