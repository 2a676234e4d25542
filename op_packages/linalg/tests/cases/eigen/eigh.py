"""Cases of eigh. Its gradient is that of a Hermitian matrix, which test_symmetric.py checks."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats

X = floats([2, 1], [1, 2])
HERMITIAN = np.array([[2, 1j], [-1j, 2]], np.complex64)

CASES = [
    OpCase("eigh", {"X": X}, outputs={"Eigenvalues": floats(1, 3), "Eigenvectors": None}, name="symmetric"),
    OpCase("eigh", {"X": HERMITIAN}, outputs={"Eigenvalues": floats(1, 3), "Eigenvectors": None}, name="hermitian"),
    OpCase(
        "eigh",
        {"X": np.triu(X)},
        {"UPLO": "U"},
        {"Eigenvalues": floats(1, 3), "Eigenvectors": None},
        name="upper_half_is_read",
    ),
    OpCase(
        "eigh",
        {"X": np.zeros((0, 3, 3), f32)},
        outputs={"Eigenvalues": np.zeros((0, 3), f32), "Eigenvectors": np.zeros((0, 3, 3), f32)},
        name="no_matrix",
    ),
    OpCase(
        "eigh_grad",
        {
            "Eigenvalues": floats(1, 3),
            "Eigenvectors": np.eye(2, dtype=f32),
            "Eigenvalues@GRAD": floats(5, 7),
            "Eigenvectors@GRAD": floats([0, 8], [0, 0]),
        },
        outputs={"X@GRAD": floats([5, 2], [2, 7])},
        name="diagonal",
    ),
]
