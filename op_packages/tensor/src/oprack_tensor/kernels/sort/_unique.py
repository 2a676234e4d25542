"""Different values in the order of their first appearance."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array


def by_appearance(x: Array) -> tuple[Array, Array, Array]:
    """(different values, the place among them of each element, how often each appears)."""
    out, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return out[order], rank[inverse.reshape(-1)], counts[order]
