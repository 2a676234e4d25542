"""Cases of masked_select."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
CASES = [OpCase("masked_select", {"X": X, "Mask": X > 2}, outputs={"Y": np.float32([3, 4, 5, 6])}, grads=["X"])]
