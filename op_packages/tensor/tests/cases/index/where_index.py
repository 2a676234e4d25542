"""Cases of where_index."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

NONE = np.zeros((2, 3), bool)
CASES = [OpCase("where_index", {"Condition": NONE}, outputs={"Out": np.zeros((0, 2), np.int64)}, name="none")]
