"""Cases of reduce_sum."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import empty, f32

CASES = [
    OpCase("reduce_sum", {"X": empty}, {"dim": [0]}, {"Out": np.zeros(3, f32)}, name="empty"),
]
