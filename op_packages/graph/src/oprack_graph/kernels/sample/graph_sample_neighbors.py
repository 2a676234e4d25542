"""Kernel of graph_sample_neighbors."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel

from oprack_graph.kernels.sample._sample import numbers_of, sampled


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
