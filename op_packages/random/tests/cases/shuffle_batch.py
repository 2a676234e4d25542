"""Cases of the gradient of shuffle_batch: rows go back."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

G = np.arange(12.0).reshape(2, 2, 3)
CASES = [
    OpCase(
        "shuffle_batch_grad",
        {"ShuffleIdx": np.array([2, 0, 3, 1]), "Out@GRAD": G},
        {},
        {"X@GRAD": G.reshape(4, 3)[[2, 0, 3, 1]].reshape(2, 2, 3)},
    ),
]
