"""Cases of complex: parts that broadcast."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import im, re, z

CASES = [
    OpCase("complex", {"X": re, "Y": im}, outputs={"Out": z}, grads=["X", "Y"]),
    OpCase(
        "complex",
        {"X": re, "Y": im[:1]},
        outputs={"Out": (re + 1j * im[:1]).astype(np.complex64)},
        grads=["X", "Y"],
        name="broadcast",
    ),
    OpCase(
        "complex", {"X": np.zeros((0, 1)), "Y": np.zeros(3)}, outputs={"Out": np.zeros((0, 3), complex)}, name="empty"
    ),
]
