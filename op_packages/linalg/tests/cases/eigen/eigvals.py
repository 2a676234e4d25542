"""Cases of eigvals."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import floats

CASES = [
    OpCase(
        "eigvals", {"X": floats([0, -2], [2, 0])}, outputs={"Out": np.array([2j, -2j], np.complex64)}, name="rotation"
    ),
    OpCase(
        "eigvals",
        {"X": np.array([[1j, 0], [5, 2]], np.complex64)},
        outputs={"Out": np.array([1j, 2], np.complex64)},
        name="complex",
    ),
]
