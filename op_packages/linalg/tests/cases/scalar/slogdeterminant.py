"""Cases of slogdeterminant."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import EMPTY, REGULAR, SINGULAR, floats

CASES = [
    OpCase(
        "slogdeterminant",
        {"Input": REGULAR},
        outputs={"Out": floats([1, -1], np.log([21.5, 31.5]))},
        grads=["Input"],
        name="batch",
    ),
    OpCase(
        "slogdeterminant", {"Input": REGULAR[1]}, outputs={"Out": floats(-1, np.log(31.5))}, grads=["Input"], name="one"
    ),
    OpCase("slogdeterminant", {"Input": 0 * SINGULAR}, outputs={"Out": floats(0, -np.inf)}, name="singular"),
    OpCase("slogdeterminant", {"Input": EMPTY}, outputs={"Out": floats([1, 1], [0, 0])}, name="empty"),
]
