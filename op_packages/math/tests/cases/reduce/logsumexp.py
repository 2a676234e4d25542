"""Cases of logsumexp."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats, inf

CASES = [
    OpCase(
        "logsumexp",
        {"X": np.array([[-inf, -inf], [1000, 1000]], f32)},
        {"axis": [1]},
        {"Out": floats(-inf, 1000 + np.log(2))},
        name="extremes",
    ),
]
