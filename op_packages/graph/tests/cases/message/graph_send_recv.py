"""Cases of graph_send_recv: every reduction, a node without edges, a size of its own, integers, no edges."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1.5, -2], [0.5, 4], [-3, 1]])
SRC, DST = np.array([0, 1, 2, 1]), np.array([1, 1, 0, 3])
RECEIVED = {
    "SUM": [[-3, 1], [2, 2], [0, 0], [0.5, 4]],
    "MEAN": [[-3, 1], [1, 1], [0, 0], [0.5, 4]],
    "MIN": [[-3, 1], [0.5, -2], [0, 0], [0.5, 4]],
    "MAX": [[-3, 1], [1.5, 4], [0, 0], [0.5, 4]],
}
COUNT = np.array([1, 2, 0, 1], np.int32)
CASES = [
    *(
        OpCase(
            "graph_send_recv",
            {"X": X, "Src_index": SRC, "Dst_index": DST},
            {"reduce_op": how, "out_size": [4]},
            {"Out": np.array(want, float), "Dst_count": COUNT},
            grads=["X"],
            name=how,
        )
        for how, want in RECEIVED.items()
    ),
    OpCase(
        "graph_send_recv",
        {"X": (2 * X).astype(np.int64), "Src_index": SRC, "Dst_index": DST, "Out_size": np.array([4])},
        {"reduce_op": "MAX"},
        {"Out": (2 * np.array(RECEIVED["MAX"])).astype(np.int64), "Dst_count": COUNT},
        name="integers",
    ),
    OpCase(
        "graph_send_recv",
        {"X": X, "Src_index": SRC[:0], "Dst_index": DST[:0]},
        outputs={"Out": np.zeros_like(X), "Dst_count": np.zeros(3, np.int32)},
        name="no-edges",
    ),
]
