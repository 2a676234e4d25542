"""Cases of sparse_reshape and of its gradient."""

from __future__ import annotations

import numpy as np

from .._data import BATCH, HYBRID, MATRIX, POINTS
from ._records import records

TARGET = np.array([2, 6], np.int64)
CASES = [
    case
    for name, x, shape, dims in (
        ("matrix", MATRIX, [4, 3], [4, 3]),
        ("batch", BATCH, [0, -1, 2], [2, 6, 2]),
        ("more_dims", POINTS, [3, 2, -1], [3, 2, 2]),
        ("hybrid", HYBRID, [2, 6, 2], [2, 6, 2]),
    )
    for case in records("sparse_reshape", name, x, {"shape": shape}, lambda a, dims=dims: a.reshape(dims))
]
CASES += records(
    "sparse_reshape", "by_tensor", POINTS, {"shape": [1]}, lambda a: a.reshape(2, 6), {"ShapeTensor": TARGET}
)
CASES += records(
    "sparse_reshape",
    "by_tensors",
    POINTS,
    {"shape": [1]},
    lambda a: a.reshape(2, 6),
    {"ShapeTensorList": [TARGET[:1], TARGET[1:]]},
)
