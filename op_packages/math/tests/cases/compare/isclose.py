"""Cases of isclose: NaN, infinities, tolerances as tensors, complex numbers."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

nan, inf = np.nan, np.inf
X, Y = np.array([1, nan, inf, inf, 1.1, nan]), np.array([1 + 1e-7, nan, inf, -inf, 1, 0])
CLOSE = np.array([True, False, True, False, False, False])
CASES = [
    OpCase("isclose", {"Input": X, "Other": Y}, outputs={"Out": CLOSE}),
    OpCase(
        "isclose",
        {"Input": X, "Other": Y},
        {"equal_nan": True},
        {"Out": CLOSE | np.array([False, True, False, False, False, False])},
        name="nan",
    ),
    OpCase(
        "isclose",
        {"Input": X[[0, 4]], "Other": Y[[0, 4]], "Rtol": np.array([0.2]), "Atol": np.array([0.0])},
        {"rtol": "0"},
        {"Out": np.array([True, True])},
        name="tensors",
    ),
    OpCase("isclose", {"Input": X[:1] + 1j, "Other": Y[:1] + 2j}, outputs={"Out": np.array([False])}, name="complex"),
]
