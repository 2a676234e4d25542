"""Kernel of graph_khop_sampler."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel

from oprack_graph.kernels.sample._sample import numbers_of, sampled


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
