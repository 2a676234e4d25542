"""Cases of as_real."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import im, no_z, re, z

CASES = [
    OpCase("as_real", {"X": z}, outputs={"Out": np.stack([re, im], -1)}, grads=["X"]),
    OpCase("as_real", {"X": no_z}, outputs={"Out": np.zeros((0, 3, 2), np.float32)}, name="empty"),
    OpCase("as_real", {"X": np.array(2 - 3j)}, outputs={"Out": np.array([2.0, -3.0])}, name="scalar"),
]
