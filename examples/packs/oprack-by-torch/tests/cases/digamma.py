"""Cases of digamma; expected outputs come from its recurrence and its series for large arguments."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase


def psi(x: float) -> float:
    """psi(x) = psi(x + 1) - 1 / x up to x = 20, and then ln x - 1 / 2x - sum of B_2n / (2n x^2n)."""
    shift = 0.0
    while x < 20:
        shift, x = shift - 1 / x, x + 1
    return shift + np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


x = np.array([[0.25, 1.0, 2.5], [3.0, 7.5, 0.75]])
EXPECTED = np.vectorize(psi)(x)
CASES = [
    OpCase("digamma", {"X": x.astype(dtype)}, outputs={"Out": EXPECTED.astype(dtype)}, grads=["X"], name=dtype)
    for dtype in ("float32", "float64")
]
CASES.append(OpCase("digamma", {"X": x[:0]}, outputs={"Out": x[:0]}, name="empty"))
