"""Cases of partial_concat: columns from the end, all that are left."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = [np.arange(12.0).reshape(3, 4), np.arange(12.0, 24).reshape(3, 4)]
CASES = [
    OpCase(
        "partial_concat",
        {"X": X},
        {"start_index": -3, "length": 2},
        {"Out": np.concatenate([x[:, 1:3] for x in X], 1)},
        grads=["X"],
    ),
    OpCase(
        "partial_concat",
        {"X": X},
        {"start_index": 1},
        {"Out": np.concatenate([x[:, 1:] for x in X], 1)},
        grads=["X"],
        name="rest",
    ),
]
