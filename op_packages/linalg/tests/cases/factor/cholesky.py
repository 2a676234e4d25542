"""Cases of cholesky. Its gradient is that of a symmetric matrix, which test_symmetric.py checks."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import EMPTY, LOWER, NONE, POSITIVE, f32

CASES = [
    OpCase("cholesky", {"X": POSITIVE}, outputs={"Out": LOWER}, name="lower"),
    OpCase("cholesky", {"X": POSITIVE}, {"upper": True}, {"Out": LOWER.swapaxes(-1, -2).copy()}, name="upper"),
    OpCase("cholesky", {"X": np.tril(POSITIVE)}, outputs={"Out": LOWER}, name="half_of_it_is_read"),
    OpCase(
        "cholesky", {"X": np.triu(POSITIVE)}, {"upper": True}, {"Out": LOWER.swapaxes(-1, -2).copy()}, name="other_half"
    ),
    OpCase("cholesky", {"X": NONE}, outputs={"Out": NONE}, name="no_matrix"),
    OpCase("cholesky", {"X": EMPTY}, outputs={"Out": EMPTY}, name="empty"),
    OpCase(
        "cholesky_grad",
        {"Out": np.array([[3]], f32), "Out@GRAD": np.array([[6]], f32)},
        outputs={"X@GRAD": np.array([[1]], f32)},
        name="root",
    ),
]
