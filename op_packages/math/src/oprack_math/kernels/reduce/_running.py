"""The best element so far along a dim, and the gradient of it."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array
from oprack.tensor import numpy_dtype


def running_extremum(x: Array, extremum: np.ufunc, axis: int, dtype: int) -> tuple[Array, Array]:
    """(values, places) of the extremum ufunc's running result; of equal elements the last one counts."""
    kind = numpy_dtype(dtype)
    if not x.ndim:
        return x.copy(), np.zeros((), kind)
    best = extremum.accumulate(x, axis=axis)
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    reached = np.where((x == best) | (x != x), places, 0)
    return best, np.maximum.accumulate(reached, axis=axis).astype(kind)


def add_at(x: Array, indices: Array, gradient: Array, axis: int) -> Array:
    """Zeros like x, and each element of the gradient added where its index along the dim says."""
    total = np.zeros_like(x)
    if not x.ndim:
        return total + gradient
    where = list(np.ogrid[tuple(slice(n) for n in x.shape)])
    where[axis] = indices
    np.add.at(total, tuple(where), gradient)
    return total
