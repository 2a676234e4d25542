"""Cases of graph_send_uv: products of features that broadcast."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[[1.0, 2], [3, 4]], [[-1, 0.5], [2, -3]]])
Y = np.array([[2.0, -1], [0.5, 3], [1, 1]])
SRC, DST = np.array([1, 0, 1, 1], np.int32), np.array([2, 0, 0, 1], np.int32)
CASES = [
    OpCase(
        "graph_send_uv",
        {"x": X, "y": Y, "src_index": SRC, "dst_index": DST},
        {"message_op": "MUL"},
        {"out": np.stack([X[s] * Y[d] for s, d in zip(SRC, DST, strict=True)])},
        grads=["x", "y"],
    )
]
