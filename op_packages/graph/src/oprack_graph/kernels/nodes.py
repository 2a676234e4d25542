"""Kernels of ops on the nodes of a graph."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel


@kernel("graph_reindex", dtypes=frozenset({"int32", "int64"}))
def graph_reindex(
    X: Array,
    Neighbors: Array,
    Count: Array,
    HashTable_Value: Array | None = None,
    HashTable_Index: Array | None = None,
) -> tuple[Array, Array, Array]:
    nodes = len(X)
    if Count.sum() != len(Neighbors) or (Count < 0).any() or (len(Count) % nodes if nodes else len(Count)):
        raise InvalidArgumentError(
            f"op graph_reindex: Count holds {len(Count)} numbers that sum to {int(Count.sum())}, for {nodes} nodes and "
            f"{len(Neighbors)} neighbours; expected a count for each node (and kind of edge), {len(Neighbors)} in all"
        )
    everything = np.concatenate([X, Neighbors])
    values, first, place = np.unique(everything, return_index=True, return_inverse=True)
    order = np.argsort(first)  # values as they come
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    place = number[place.reshape(-1)]
    if not np.array_equal(place[:nodes], np.arange(nodes)):
        raise InvalidArgumentError("op graph_reindex: X holds a node twice; expected each node once")
    owner = np.tile(np.arange(nodes), len(Count) // nodes if nodes else 0)
    kind = X.dtype
    return place[nodes:].astype(kind), np.repeat(owner, Count).astype(kind), values[order].astype(kind)
