"""Cases of squeeze."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
CASES = [OpCase("squeeze", {"X": X}, {"axes": [1]}, {"Out": X[:, 0]}, grads=["X"])]
