"""Cases of reduce_prod."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import empty, f32

CASES = [
    OpCase("reduce_prod", {"X": empty}, {"dim": [0], "keep_dim": True}, {"Out": np.ones((1, 3), f32)}, name="empty"),
]
