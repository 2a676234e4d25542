"""Cases of argsort."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
CASES = [OpCase("argsort", {"X": X}, {"descending": True}, {"Out": X[:, ::-1]}, grads=["X"])]
