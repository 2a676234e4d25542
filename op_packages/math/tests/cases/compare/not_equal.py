"""Cases of not_equal."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "not_equal",
        {"X": np.array([1e-8, 0.9e-8]), "Y": np.zeros(2)},
        outputs={"Out": np.array([True, False])},
        name="tolerance",
    ),
]
