"""Kernel of weighted_sample_neighbors."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel

from oprack_graph.kernels.sample._sample import numbers_of, sampled


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
