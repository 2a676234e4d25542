"""Cases of graph_reindex: two kinds of edges, no neighbours."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([7, 3], np.int32)
CASES = [
    OpCase(
        "graph_reindex",
        {
            "X": X,
            "Neighbors": np.array([3, 9, 9, 7, 2], np.int32),
            "Count": np.array([2, 1, 0, 2], np.int32),
        },
        outputs={
            "Reindex_Src": np.array([1, 2, 2, 0, 3], np.int32),
            "Reindex_Dst": np.array([0, 0, 1, 1, 1], np.int32),
            "Out_Nodes": np.array([7, 3, 9, 2], np.int32),
        },
        name="two-kinds",
    ),
    OpCase(
        "graph_reindex",
        {"X": X, "Neighbors": X[:0], "Count": np.zeros(2, np.int32)},
        outputs={"Reindex_Src": X[:0], "Reindex_Dst": X[:0], "Out_Nodes": X},
        name="alone",
    ),
]
