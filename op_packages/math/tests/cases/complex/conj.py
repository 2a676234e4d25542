"""Cases of conj: integers and real numbers stay as they are."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._data import im, re, z

CASES = [
    OpCase("conj", {"X": z}, outputs={"Out": (re - 1j * im).astype(np.complex64)}, grads=["X"]),
    OpCase("conj", {"X": np.array([3, -4])}, outputs={"Out": np.array([3, -4])}, name="integers"),
    OpCase("conj", {"X": re}, outputs={"Out": re}, grads=["X"], name="real"),
]
