"""Cases of as_complex."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import im, re, z

CASES = [
    OpCase("as_complex", {"X": np.stack([re, im], -1)}, outputs={"Out": z}, grads=["X"]),
    OpCase("as_complex", {"X": np.array([2.0, -3.0])}, outputs={"Out": np.array(2 - 3j)}, name="pair"),
]
