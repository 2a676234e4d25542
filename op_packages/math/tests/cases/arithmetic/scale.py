"""Cases of scale."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import ints, rows, with_values, y

CASES = [
    OpCase("scale", {"X": rows}, {"scale": 0.5, "bias": 1.0}, {"Out": with_values(rows.value * 0.5 + 1)}, name="rows"),
    OpCase(
        "scale",
        {"X": ints(7, -7)},
        {"scale": 2.5, "bias": -0.7, "bias_after_scale": False},
        {"Out": ints(14, -14)},
        name="integers",
    ),
    OpCase(
        "scale",
        {"X": np.array([True, False])},
        {"scale": 2.0, "bias": 0.5},
        {"Out": np.array([True, True])},
        name="bool",
    ),
    OpCase(
        "scale",
        {"X": y, "ScaleTensor": np.array([3.0])},
        {"scale": 9.0, "bias": 1.0},
        {"Out": y * 3 + 1},
        ["X"],
        name="tensor",
    ),
]
