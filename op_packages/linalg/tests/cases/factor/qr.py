"""Cases of qr."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32, floats

X = floats([3, 1], [4, 2])
Q = floats([-0.6, -0.8], [-0.8, 0.6])

CASES = [
    OpCase("qr", {"X": X}, outputs={"Q": Q, "R": floats([-5, -2.2], [0, 0.4])}, grads=["X"], name="square"),
    OpCase("qr", {"X": X}, {"mode": "r"}, {"Q": np.zeros(0, f32), "R": floats([-5, -2.2], [0, 0.4])}, name="r"),
    OpCase("qr", {"X": X[:, :1]}, {"mode": "complete"}, {"Q": Q, "R": floats([-5], [0])}, name="complete"),
    OpCase("qr", {"X": draw(2, 3, 5)}, {"mode": "complete"}, grads=["X"], name="complete_wide"),
    OpCase("qr", {"X": draw(2, 3, 5)}, grads=["X"], name="wide"),
    OpCase("qr", {"X": draw(2, 5, 3)}, grads=["X"], name="tall"),
    OpCase(
        "qr",
        {"X": np.zeros((0, 3, 2), f32)},
        outputs={"Q": np.zeros((0, 3, 2), f32), "R": np.zeros((0, 2, 2), f32)},
        name="no_matrix",
    ),
]
