"""Cases of fill_zeros_like."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

EMPTY = np.zeros((0, 3), np.float32)
CASES = [OpCase("fill_zeros_like", {"X": EMPTY}, outputs={"Out": EMPTY}, name="empty")]
