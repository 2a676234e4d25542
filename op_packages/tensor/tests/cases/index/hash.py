"""Cases of hash: rows of 4, 8, 16 and 80 bytes, whose hashes Paddle recorded."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "hash",
        {"X": x},
        {"num_hash": len(want[0]), "mod_by": 1000},
        {"Out": np.array(want, x.dtype)[..., None]},
        name=f"{x.shape[1]}{x.dtype}",
    )
    for x, want in [
        (np.array([[1, 2], [3, 4]]), [[524, 896], [640, 562]]),
        (np.array([[1], [4]], np.int32), [[897, 218], [369, 525]]),
        (np.arange(20).reshape(2, 10), [[522], [174]]),
    ]
]
