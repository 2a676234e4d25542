"""Cases of acosh: complex numbers on both sides of the imaginary axis, where the root changes its branch."""

from __future__ import annotations

import cmath

import numpy as np
from oprack.testing import OpCase

Z = np.array([2 + 1j, -2 + 1j, -0.5 - 3j, 0.25j])
CASES = [OpCase("acosh", {"X": Z}, outputs={"Out": np.array([cmath.acosh(z) for z in Z])}, grads=["X"], name="complex")]
