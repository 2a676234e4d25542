"""Cases of broadcast_tensors: three ranks, and nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = [np.arange(3.0).reshape(3, 1), np.array([5.0, 6]), np.array(7.0)]
NOTHING = np.zeros((0, 2))
CASES = [
    OpCase("broadcast_tensors", {"X": X}, outputs={"Out": list(np.broadcast_arrays(*X))}, grads=["X"]),
    OpCase("broadcast_tensors", {"X": [NOTHING, np.ones(2)]}, outputs={"Out": [NOTHING, NOTHING]}, name="empty"),
]
