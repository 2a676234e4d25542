"""Cases of arg_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import floats, nan

CASES = [
    OpCase("arg_max", {"X": floats(nan, 1, 3, nan, 3)}, {"axis": 0}, {"Out": np.int64(2)}, name="nan"),
]
