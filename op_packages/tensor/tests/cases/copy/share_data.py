"""Cases of share_data."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(6.0).reshape(2, 3)

CASES = [
    OpCase("share_data", {"X": X}, outputs={"Out": X}),
    OpCase("share_data", {"X": np.zeros((0, 3), np.int64)}, outputs={"Out": np.zeros((0, 3), np.int64)}, name="empty"),
]
