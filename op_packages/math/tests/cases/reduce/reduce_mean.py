"""Cases of reduce_mean."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import ints

CASES = [
    OpCase("reduce_mean", {"X": ints(-3, -2, -2)}, {"dim": [0]}, {"Out": np.int32(-2)}, name="integers"),
]
