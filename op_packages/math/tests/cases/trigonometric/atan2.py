"""Cases of atan2: the axes and quadrants, integers, broadcasting."""

from __future__ import annotations

import math

import numpy as np
from oprack.testing import OpCase

UP, RIGHT = np.array([[1.0, -2.0, 0.5]]), np.array([[2.0], [-0.25]])
CASES = [
    OpCase(
        "atan2",
        {"X1": UP, "X2": RIGHT},
        outputs={"Out": np.array([[math.atan2(u, r) for u in UP[0]] for r in RIGHT[:, 0]])},
        grads=["X1", "X2"],
        name="broadcast",
    ),
    OpCase(
        "atan2",
        {"X1": np.array([0, 0, 3], np.int32), "X2": np.array([-1, 2, 0], np.int32)},
        outputs={"Out": np.array([math.pi, 0, math.pi / 2])},
        name="integers",
    ),
    OpCase("atan2", {"X1": np.zeros((0, 3)), "X2": np.zeros(3)}, outputs={"Out": np.zeros((0, 3))}, name="empty"),
]
