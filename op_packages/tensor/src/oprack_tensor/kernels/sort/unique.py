"""Kernel of unique."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype


@kernel("unique")
def unique(
    X: Array,
    *,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: list[int],
    dtype: int,
    is_sorted: bool,
) -> tuple[Array | None, ...]:
    kind = numpy_dtype(dtype)
    out, first, inverse, counts = np.unique(
        X, return_index=True, return_inverse=True, return_counts=True, axis=axis[0] if axis and is_sorted else None
    )
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return out[order], None, rank[inverse].astype(kind), None
    return (
        out,
        first.astype(kind) if return_index else None,
        inverse.astype(kind) if return_inverse else None,
        counts.astype(kind) if return_counts else None,
    )
