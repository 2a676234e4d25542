"""Kernels of ops for mixtures of experts, each on a rank of its own."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring


# counts ---------------------------------------------------------------------------------------------------------------
# How many rows go where, as the ops for experts say it.
def tables(op_type: str, local_count: Array, global_count: Array, ranks: int) -> tuple[Array, Array]:
    """Both counts as [ranks, experts]. Raises InvalidArgumentError where they are none."""
    shape, n = local_count.shape, local_count.size
    if global_count.shape != shape or n % ranks or (local_count < 0).any() or (global_count < 0).any():
        raise InvalidArgumentError(
            f"op {op_type}: local_count has shape {list(shape)}, global_count {list(global_count.shape)}; expected "
            f"counts from 0, one for each expert of each of {ranks} ranks"
        )
    return local_count.reshape(ranks, -1).astype(np.int64), global_count.reshape(ranks, -1).astype(np.int64)


def require_rows(op_type: str, x: Array, counts: Array, name: str) -> None:
    """Raise InvalidArgumentError if X has not as many rows as are counted."""
    if len(x) != counts.sum():
        raise InvalidArgumentError(f"op {op_type}: X has {len(x)} rows, but {name} counts {int(counts.sum())}")


def regrouped(x: Array, counts: Array) -> Array:
    """Rows in groups (a, b), counts[a, b] in each, b varying fastest, so that a varies fastest."""
    ends = np.cumsum(counts.reshape(-1))
    rows = np.arange(len(x))
    groups = [rows[e - n : e] for e, n in zip(ends, counts.reshape(-1), strict=True)]
    order = [groups[a * counts.shape[1] + b] for b in range(counts.shape[1]) for a in range(counts.shape[0])]
    return x[np.concatenate(order)] if order else x


# global_gather --------------------------------------------------------------------------------------------------------
@kernel("global_gather", place=PLACES, dtypes=NUMBERS)
def global_gather(X: Array, local_count: Array, global_count: Array, *, ring_id: int) -> Array:
    group = ring(ring_id)
    given, got = tables("global_gather", local_count, global_count, group.size)
    require_rows("global_gather", X, got, "global_count")
    by_rank = regrouped(X, np.ascontiguousarray(got.T))
    ends = np.cumsum(got.sum(1))
    parts = [np.ascontiguousarray(by_rank[e - n : e]) for e, n in zip(ends, got.sum(1), strict=True)]
    return np.concatenate(group.all_to_all(parts, [(int(n), X.shape[1]) for n in given.sum(1)]))


# global_scatter -------------------------------------------------------------------------------------------------------
@kernel("global_scatter", place=PLACES, dtypes=NUMBERS)
def global_scatter(X: Array, local_count: Array, global_count: Array, *, ring_id: int) -> Array:
    group = ring(ring_id)
    given, got = tables("global_scatter", local_count, global_count, group.size)
    require_rows("global_scatter", X, given, "local_count")
    ends = np.cumsum(given.sum(1))
    parts = [np.ascontiguousarray(X[e - n : e]) for e, n in zip(ends, given.sum(1), strict=True)]
    found = group.all_to_all(parts, [(int(n), X.shape[1]) for n in got.sum(1)])
    return regrouped(np.concatenate(found), got)
