"""Cases of angle: the four quadrants and both signs of real numbers."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import no_z, re, z

CORNERS = np.array([1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j])
PI = np.float32(np.pi)
CASES = [
    OpCase("angle", {"X": CORNERS}, outputs={"Out": np.pi * np.array([0.25, 0.75, -0.75, -0.25])}, grads=["X"]),
    OpCase("angle", {"X": z}, grads=["X"], name="complex64"),
    OpCase("angle", {"X": re}, outputs={"Out": np.array([[0, PI, 0], [0, 0, PI]], np.float32)}, name="real"),
    OpCase("angle", {"X": no_z}, outputs={"Out": no_z.real}, name="empty"),
    # the direction of 0 has no slope; Paddle gives 0
    OpCase(
        "angle_grad",
        {"X": np.array([0j, 2j]), "Out@GRAD": np.array([5.0, 3.0])},
        outputs={"X@GRAD": np.array([0j, -1.5])},
        name="zero",
    ),
]
