"""Kernel of weighted_sample_neighbors."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel

from oprack_graph.kernels.sample._sample import sampled


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
    numbers = eids.reshape(-1)[edges].astype(row.dtype) if return_eids else np.zeros(0, row.dtype)
    return row.reshape(-1)[edges], counts.astype(np.int32), numbers
