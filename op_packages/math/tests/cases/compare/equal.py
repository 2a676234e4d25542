"""Cases of equal."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import floats, inf, nan

CASES = [
    OpCase(
        "equal",
        {"X": floats(1e-9, 1e-7, inf, nan), "Y": floats(0, 0, inf, nan)},
        outputs={"Out": np.array([True, False, True, False])},
        name="tolerance",
    ),
]
