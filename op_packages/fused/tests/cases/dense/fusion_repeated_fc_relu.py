"""Cases of fusion_repeated_fc_relu."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw

X, W1, W2, B1, B2 = draw(5, 3), draw(3, 4, seed=1), draw(4, 2, seed=2), draw(1, 4, seed=3), draw(2, seed=4)
FIRST = np.maximum(X @ W1 + B1, 0)

CASES = [
    OpCase(
        "fusion_repeated_fc_relu",
        {"X": X, "W": [W1, W2], "Bias": [B1, B2]},
        outputs={"ReluOut": [FIRST], "Out": np.maximum(FIRST @ W2 + B2, 0)},
        atol=1e-5,
    ),
]
