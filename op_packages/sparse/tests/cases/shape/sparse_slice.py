"""Cases of sparse_slice and of its gradient."""

from __future__ import annotations

import numpy as np

from .._data import BATCH, HYBRID, MATRIX, POINTS
from ._records import records

PART = {"axes": [0, 1], "starts": [0, 1], "ends": [2, -1]}
CASES = [
    *records("sparse_slice", "matrix", MATRIX, PART, lambda a: a[0:2, 1:-1]),
    *records("sparse_slice", "points", POINTS, PART, lambda a: a[0:2, 1:-1]),
    *records(
        "sparse_slice", "batch", BATCH, {"axes": [-1, 0], "starts": [-3, 1], "ends": [9, 2]}, lambda a: a[1:2, :, -3:]
    ),
    *records(
        "sparse_slice",
        "dense_dims",
        HYBRID,
        {"axes": [1, 2], "starts": [1, 1], "ends": [4, 2]},
        lambda a: a[:, 1:4, 1:],
    ),
    *records(
        "sparse_slice",
        "by_tensors",
        POINTS,
        {"axes": [0], "starts": [0], "ends": [0]},
        lambda a: a[:, 1:3],
        {
            "AxesTensor": np.array([1], np.int64),
            "StartsTensorList": [np.array([1], np.int64)],
            "EndsTensor": np.array([3], np.int64),
        },
    ),
]
