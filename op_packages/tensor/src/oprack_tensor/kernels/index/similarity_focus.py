"""Kernel of similarity_focus."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS


@kernel("similarity_focus", dtypes=FLOATS)
def similarity_focus(X: Array, *, axis: int, indexes: list[int]) -> Array:
    """One greatest free element of all slices at a time."""
    slices = np.moveaxis(X, axis, 1)[:, indexes]
    n, k, rows, columns = slices.shape
    free = np.ones(slices.shape, bool)
    chosen = np.zeros((n, k, rows * columns), bool)
    for _ in range(min(rows, columns)):
        left = np.where(free, slices, -np.inf).reshape(n, k, rows * columns)
        # where all that is left is -inf, the first free one
        best = np.where(left.max(axis=-1) > -np.inf, left.argmax(axis=-1), free.reshape(left.shape).argmax(axis=-1))
        np.put_along_axis(chosen, best[..., None], True, axis=-1)
        row, column = np.divmod(best, columns)
        free &= (np.arange(rows) != row[..., None])[..., :, None] & (np.arange(columns) != column[..., None])[
            ..., None, :
        ]
    mask = chosen.any(axis=1).reshape(n, rows, columns)
    return np.broadcast_to(np.expand_dims(mask, axis), X.shape).astype(X.dtype)
