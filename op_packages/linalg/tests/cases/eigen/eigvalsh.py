"""Cases of eigvalsh. Its gradient is that of a Hermitian matrix, which test_symmetric.py checks."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats

X = floats([2, 1], [1, 2])

CASES = [
    OpCase("eigvalsh", {"X": X}, outputs={"Eigenvalues": floats(1, 3), "Eigenvectors": None}, name="symmetric"),
    OpCase(
        "eigvalsh",
        {"X": np.tril(X)},
        {"is_test": True},
        {"Eigenvalues": floats(1, 3), "Eigenvectors": np.zeros(0, f32)},
        name="values_alone",
    ),
    OpCase(
        "eigvalsh_grad",
        {"Eigenvectors": floats([0.6, 0.8], [-0.8, 0.6]), "Eigenvalues@GRAD": floats(25, 50)},
        outputs={"X@GRAD": floats([41, 12], [12, 34])},
        name="rotated",
    ),
]
