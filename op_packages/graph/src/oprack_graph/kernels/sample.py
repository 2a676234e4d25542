"""Samples of the neighbours of nodes."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel


# sample ---------------------------------------------------------------------------------------------------------------
# Samples of neighbours: the edges of all nodes side by side, ranked by random keys.
def sampled(
    op: str, row: Array, starts: Array, nodes: Array, size: int, weights: Array | None, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The edges that are sampled, and how many of each node.

    Args:
        op: The op, for messages.
        row: Neighbours of all nodes.
        starts: Where each node's begin in row, and the end.
        nodes: Nodes to sample for.
        size: At most so many of a node; negative for all.
        weights: Of the edges; None where all are alike.
        generator: Draws.

    Returns:
        Places in row, one node after the other, in the order of row; and a count for each node.

    Raises:
        InvalidArgumentError: A node is none of the graph, `starts` is not in order within row, or a weight is negative.
    """
    starts, nodes = starts.reshape(-1).astype(np.int64), nodes.reshape(-1).astype(np.int64)
    if nodes.size and not (0 <= nodes.min() and nodes.max() < len(starts) - 1):
        raise InvalidArgumentError(
            f"op {op}: nodes {nodes.min()} to {nodes.max()} are asked for; expected 0 <= node < {len(starts) - 1}"
        )
    if len(starts) and ((np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > row.size):
        raise InvalidArgumentError(
            f"op {op}: where neighbours begin goes from {starts[0]} to {starts[-1]}; expected rising numbers from 0 to "
            f"{row.size}, the neighbours there are"
        )
    counts = starts[nodes + 1] - starts[nodes]
    first = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(nodes)), counts)
    place = np.arange(len(owner)) - np.repeat(first, counts)
    edges = np.repeat(starts[nodes], counts) + place
    if size < 0:
        return edges, counts
    # The order of exponential draws over weights is that of draws without putting back.
    keys = generator.exponential(size=len(edges))
    if weights is not None:
        if weights.size and not weights.min() >= 0:
            raise InvalidArgumentError(f"op {op}: edge_weight holds {weights.min()}; expected numbers from 0 on")
        with np.errstate(divide="ignore"):
            keys = keys / weights.reshape(-1)[edges]
    ranks = np.empty(len(edges), np.int64)
    ranks[np.lexsort((keys, owner))] = place
    kept = ranks < size
    return edges[kept], np.minimum(counts, size)


def numbers_of(edges: Array, eids: Array | None, dtype: np.dtype) -> Array:
    """The numbers of edges at these places; none where nobody asks for them."""
    return np.zeros(0, dtype) if eids is None else eids.reshape(-1)[edges].astype(dtype)


# graph_khop_sampler ---------------------------------------------------------------------------------------------------
def _each_once(values: Array) -> Array:
    """Values without repetition, as they come."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


@kernel("graph_khop_sampler", dtypes={"int32", "int64"})
def graph_khop_sampler(
    Row: Array,
    Col_Ptr: Array,
    X: Array,
    Eids: Array | None = None,
    *,
    sample_sizes: list[int],
    return_eids: bool,
    ctx: KernelContext,
) -> tuple[Array, ...]:
    """Hop by hop for all nodes at once, and one search of all edges' ends among the nodes."""
    generator, neighbours = ctx.generator(0), Row.reshape(-1)
    reached = newest = _each_once(X.reshape(-1))
    edges, ends = [np.zeros(0, np.int64)], [newest[:0]]
    for hop, size in enumerate(sample_sizes):
        if hop:
            newest = np.setdiff1d(neighbours[edges[-1]], reached)
            reached = np.concatenate([reached, newest])
        found, counts = sampled("graph_khop_sampler", Row, Col_Ptr, newest, size, None, generator)
        edges.append(found)
        ends.append(np.repeat(newest, counts))
    every, end = np.concatenate(edges), np.concatenate(ends)
    begin = neighbours[every]
    nodes = np.concatenate([reached, _each_once(begin[~np.isin(begin, reached)])])
    order = np.argsort(nodes)
    source, target, start = (order[np.searchsorted(nodes, v, sorter=order)] for v in (begin, end, X.reshape(-1)))
    outputs = (
        source[:, None],
        target[:, None],
        nodes,
        start,
        numbers_of(every, Eids if return_eids else None, Row.dtype),
    )
    return tuple(v.astype(Row.dtype) for v in outputs)


# graph_sample_neighbors -----------------------------------------------------------------------------------------------
@kernel("graph_sample_neighbors", dtypes={"int32", "int64"})
def graph_sample_neighbors(
    Row: Array,
    Col_Ptr: Array,
    X: Array,
    Eids: Array | None = None,
    *,
    sample_size: int,
    return_eids: bool,
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """Edges by random keys."""
    edges, counts = sampled("graph_sample_neighbors", Row, Col_Ptr, X, sample_size, None, ctx.generator(0))
    return Row.reshape(-1)[edges], counts.astype(np.int32), numbers_of(edges, Eids if return_eids else None, Row.dtype)


# weighted_sample_neighbors --------------------------------------------------------------------------------------------
@kernel("weighted_sample_neighbors", dtypes={"int32", "int64"})
def weighted_sample_neighbors(
    row: Array,
    colptr: Array,
    edge_weight: Array,
    input_nodes: Array,
    eids: Array | None = None,
    *,
    sample_size: int,
    return_eids: bool,
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """Edges by random keys over their weights."""
    op = "weighted_sample_neighbors"
    edges, counts = sampled(op, row, colptr, input_nodes, sample_size, edge_weight, ctx.generator(0))
    return row.reshape(-1)[edges], counts.astype(np.int32), numbers_of(edges, eids if return_eids else None, row.dtype)
