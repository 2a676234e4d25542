"""Cases of weighted_sample_neighbors that do not depend on the draw: all neighbours, or those whose weight is not 0."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._graph import ALL, EDGES, NODES, ROW, STARTS

OUTPUTS = ("out_neighbors", "out_count", "out_eids")
SURE = np.array([0, 3]), np.array([1, 0, 1], np.int32), np.array([15, 12])
CASES = [
    OpCase(
        "weighted_sample_neighbors",
        {
            "row": ROW,
            "colptr": STARTS,
            "edge_weight": np.array([0, 0, 1, 1, 0, 2], np.float32),
            "input_nodes": NODES,
            "eids": EDGES,
        },
        {"sample_size": size, "return_eids": True},
        dict(zip(OUTPUTS, found, strict=True)),
        name=f"at most {size}",
    )
    for size, found in ((-1, ALL), (1, SURE))
]
