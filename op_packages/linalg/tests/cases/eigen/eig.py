"""Cases of eig. Vectors are known up to a factor, so that records compare eigenvalues."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats

CASES = [
    OpCase(
        "eig",
        {"X": floats([0, -2], [2, 0])},
        outputs={"Eigenvalues": np.array([2j, -2j], np.complex64), "Eigenvectors": None},
        name="rotation",
    ),
    OpCase(
        "eig",
        {"X": np.zeros((0, 3, 3), f32)},
        outputs={"Eigenvalues": np.zeros((0, 3), np.complex64), "Eigenvectors": np.zeros((0, 3, 3), np.complex64)},
        name="no_matrix",
    ),
    OpCase(
        "eig_grad",
        {
            "Eigenvalues": np.array([1, 4, 9], np.complex64),
            "Eigenvectors": np.eye(3, dtype=np.complex64),
            "Eigenvalues@GRAD": np.array([1, 2j, 3], np.complex64),
            "Eigenvectors@GRAD": np.arange(9).reshape(3, 3).astype(np.complex64),
        },
        # V@GRAD_ij / (lambda_j - lambda_i) beside the diagonal
        outputs={
            "X@GRAD": np.array([[1, 1 / 3, 2 / 8], [3 / -3, 2j, 5 / 5], [6 / -8, 7 / -5, 3]], np.complex64),
        },
        name="diagonal",
    ),
]
