"""Cases of logcumsumexp: numbers whose exponentials overflow, both directions, with and without the element itself."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[700.0, 710, -800, 5], [-3, 0.5, 2, 1]])
LOWEST = np.finfo(np.float64).min
SUMS = np.logaddexp.accumulate(X, 1)
BACK = np.logaddexp.accumulate(X[:, ::-1], 1)[:, ::-1]
CASES = [
    OpCase("logcumsumexp", {"X": X}, {"axis": 1}, {"Out": SUMS}, grads=["X"]),
    OpCase("logcumsumexp", {"X": X}, {"axis": -1, "reverse": True}, {"Out": BACK}, grads=["X"], name="reverse"),
    OpCase(
        "logcumsumexp",
        {"X": X},
        {"axis": 1, "exclusive": True},
        {"Out": np.concatenate([np.full((2, 1), LOWEST), SUMS[:, :-1]], 1)},
        name="exclusive",
    ),
    OpCase(
        "logcumsumexp",
        {"X": X[1:]},
        {"flatten": True},
        {"Out": np.log(np.cumsum(np.exp(X[1])))},
        grads=["X"],
        name="flat",
    ),
    OpCase("logcumsumexp", {"X": np.array(2.0)}, {"axis": 0}, {"Out": np.array(2.0)}, grads=["X"], name="scalar"),
    OpCase("logcumsumexp", {"X": np.zeros((0, 2))}, {"axis": 0}, {"Out": np.zeros((0, 2))}, name="empty"),
]
