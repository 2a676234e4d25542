"""Cases of cumsum."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import x

CASES = [
    OpCase(
        "cumsum",
        {"X": x},
        {"axis": 1, "exclusive": True, "reverse": True},
        {"Out": np.cumsum(x[:, ::-1], 1)[:, ::-1] - x},
        ["X"],
        name="from_the_end",
    ),
]
