"""Permutations from the pivots of an LU factorization."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array


def row_order(op_type: str, pivots: Array, rows: int) -> Array:
    """The rows of X in the order of L U: X[row_order] = L U.

    Args:
        op_type: The op, for the error.
        pivots: int32 [..., K]: row i was swapped with row pivots[i], counted from 1.
        rows: Rows of X.

    Returns:
        int64 [..., rows].

    Raises:
        InvalidArgumentError: A pivot is no row.
    """
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= rows):
        raise InvalidArgumentError(
            f"op {op_type}: Pivots has numbers from {pivots.min()} to {pivots.max()}; expected numbers of the {rows} "
            "rows of X, counted from 1, as lu gives them"
        )
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        swapped = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., i : i + 1].copy(), -1)
        order[..., i : i + 1] = swapped
    return order


def to_original_rows(matrix: Array, order: Array) -> Array:
    """P times a matrix: its row i becomes row order[i]."""
    return np.take_along_axis(matrix, np.argsort(order, axis=-1)[..., None], -2)
