"""Cases of unsqueeze."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CASES = [OpCase("unsqueeze", {"X": X}, {"axes": [-1, 0]}, {"Out": X[None, ..., None]}, grads=["X"])]
