"""Cases of sparse_full_like."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase
from oprack.types import VarType

from .._data import HYBRID, MATRIX


def ones(x, dtype=np.float32) -> np.ndarray:
    return np.ones(x.values.shape, dtype)


CASES = [
    OpCase(
        "sparse_full_like", {"x": HYBRID}, {"value": 2.5}, {"out": HYBRID.with_values(ones(HYBRID) * 2.5)}, name="coo"
    ),
    OpCase(
        "sparse_full_like",
        {"x": MATRIX},
        {"value": 3.0, "dtype": int(VarType.INT64)},
        {"out": MATRIX.with_values(ones(MATRIX, np.int64) * 3)},
        name="integers",
    ),
    OpCase(
        "sparse_full_like",
        {"x": MATRIX, "ValueTensor": np.array([7.0], np.float32)},
        {"value": 3.0},
        {"out": MATRIX.with_values(ones(MATRIX) * 7)},
        name="by_tensor",
    ),
]
