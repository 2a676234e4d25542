"""Cases of determinant."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import EMPTY, REGULAR, SINGULAR, floats

CASES = [
    OpCase("determinant", {"Input": REGULAR}, outputs={"Out": floats(21.5, -31.5)}, grads=["Input"], name="batch"),
    OpCase("determinant", {"Input": REGULAR[0]}, outputs={"Out": np.array(21.5, "f4")}, grads=["Input"], name="one"),
    OpCase("determinant", {"Input": SINGULAR}, outputs={"Out": np.array(0, "f4")}, grads=["Input"], name="singular"),
    OpCase("determinant", {"Input": EMPTY}, outputs={"Out": floats(1, 1)}, name="empty"),
]
