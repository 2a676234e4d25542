"""Cases of spp: maxima, on an image whose sides are no powers of 2."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.random.default_rng(6).permutation(2 * 3 * 5).reshape(1, 2, 3, 5).astype(np.float64)
# windows of 2 x 3, whose first row and column lie outside
PADDED = [[X[0, c, max(y, 0) : y + 2, max(x, 0) : x + 3].max() for y in (-1, 1) for x in (-1, 2)] for c in range(2)]
CASES = [
    OpCase(
        "spp",
        {"X": X},
        {"pyramid_height": 2, "pooling_type": "max"},
        {"Out": np.concatenate([X.max(axis=(2, 3)).reshape(-1), np.reshape(PADDED, -1)])[None]},
        grads=["X"],
    )
]
