"""Cases of graph_send_ue_recv: edges with one number for all features, products and means."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1.5, -2], [0.5, 4]])
Y = np.array([[2.0], [-1], [3]])
SRC, DST = np.array([0, 1, 0]), np.array([1, 1, 0])
WANT = {
    ("MUL", "SUM"): [[4.5, -6], [2.5, -8]],
    ("MUL", "MEAN"): [[4.5, -6], [1.25, -4]],
    ("ADD", "MIN"): [[4.5, 1], [-0.5, 0]],
}
CASES = [
    OpCase(
        "graph_send_ue_recv",
        {"X": X, "Y": Y, "Src_index": SRC, "Dst_index": DST},
        {"message_op": message, "reduce_op": reduce},
        {"Out": np.array(want, float), "Dst_count": np.array([1, 2], np.int32)},
        grads=["X", "Y"],
        name=f"{message}-{reduce}",
    )
    for (message, reduce), want in WANT.items()
]
