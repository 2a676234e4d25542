"""Cases of truncated_gaussian_random: with std 0 every draw is the mean."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "truncated_gaussian_random",
        {},
        {"shape": [2, 3], "mean": 1.5, "std": 0.0},
        {"Out": np.full((2, 3), 1.5, np.float32)},
    )
]
