"""Cases of index_put: truth values, places named twice, a value that broadcasts."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(12.0).reshape(3, 4)
ROWS = np.array([True, False, True])
PLACES = [np.array([0, 0, 2]), np.array([1, 1, -1])]
PUT, ADDED = X.copy(), X.copy()
PUT[ROWS] = [[7.0, 8, 9, 10]]
np.add.at(ADDED, tuple(PLACES), [5.0, 6, 7])
CASES = [
    OpCase(
        "index_put",
        {"x": X, "indices": [ROWS], "value": np.array([[7.0, 8, 9, 10]])},
        {},
        {"out": PUT},
        grads=["x", "value"],
        name="truth",
    ),
    OpCase(
        "index_put",
        {"x": X, "indices": PLACES, "value": np.array([5.0, 6, 7])},
        {"accumulate": True},
        {"out": ADDED},
        grads=["x", "value"],
        name="added",
    ),
]
