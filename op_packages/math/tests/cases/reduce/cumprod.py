"""Cases of cumprod: zeros, one and several in a row, and complex numbers."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

ZEROS = np.array([[1.0, 2, 0, 3, 0, 4], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])
COMPLEX = np.array([[1 + 1j, 2 - 1j], [0.5j, -1 + 0.25j], [0, 3 + 1j]])
CASES = [
    OpCase("cumprod", {"X": ZEROS}, {"dim": 1}, {"Out": np.cumprod(ZEROS, 1)}, grads=["X"], name="zeros"),
    OpCase("cumprod", {"X": ZEROS}, {"dim": -2}, {"Out": np.cumprod(ZEROS, 0)}, grads=["X"], name="columns"),
    OpCase("cumprod", {"X": COMPLEX}, {"dim": 0}, {"Out": np.cumprod(COMPLEX, 0)}, grads=["X"], name="complex"),
    OpCase("cumprod", {"X": np.array(3.0)}, {"dim": 0}, {"Out": np.array(3.0)}, grads=["X"], name="scalar"),
    OpCase("cumprod", {"X": np.zeros((0, 2))}, {"dim": 0}, {"Out": np.zeros((0, 2))}, name="empty"),
]
