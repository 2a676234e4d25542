"""Cases of diag_embed: dims in either order."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1.0, 2], [3, 4]])
ABOVE = np.stack([np.diag(row, 1) for row in X])
CASES = [
    OpCase("diag_embed", {"Input": X}, {"offset": 1}, {"Out": ABOVE}),
    OpCase(
        "diag_embed", {"Input": X}, {"offset": 1, "dim1": 0, "dim2": 2}, {"Out": ABOVE.swapaxes(0, 1)}, name="front"
    ),
    OpCase(
        "diag_embed",
        {"Input": X},
        {"offset": 1, "dim1": -1, "dim2": -2},
        {"Out": ABOVE.swapaxes(1, 2)},
        name="turned",
    ),
    OpCase("diag_embed", {"Input": np.zeros((2, 0))}, {"offset": 1}, {"Out": np.zeros((2, 1, 1))}, name="empty"),
]
