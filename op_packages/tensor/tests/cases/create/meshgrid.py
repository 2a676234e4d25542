"""Cases of meshgrid."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X, Y = np.float32([1, 2, 3]), np.float32([4, 5])
OUT = list(np.meshgrid(X, Y, indexing="ij"))
CASES = [OpCase("meshgrid", {"X": [X, Y]}, outputs={"Out": OUT}, grads=["X"])]
