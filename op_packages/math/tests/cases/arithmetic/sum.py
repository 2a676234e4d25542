"""Cases of sum."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.testing import OpCase

from .._data import f32, merged, no_rows, rows, x, y

CASES = [
    OpCase("sum", {"X": [rows, no_rows]}, outputs={"Out": merged([9, 16], [4, 16])}, name="rows"),
    OpCase("sum", {"X": [rows, np.ones((5, 2), f32)]}, outputs={"Out": rows.to_dense() + 1}, name="rows_and_dense"),
    OpCase("sum", {"X": [np.ones((5, 2), f32), rows]}, outputs={"Out": rows.to_dense() + 1}, name="dense_and_rows"),
    OpCase("sum", {"X": [x, x, x]}, outputs={"Out": 3 * x}, grads=["X"], name="three"),
    OpCase(
        "sum",
        {
            "X": [
                LoDTensorArray([LoDTensor(y), LoDTensor(y)]),
                LoDTensorArray([LoDTensor(y + 1)]),
            ]
        },
        outputs={"Out": LoDTensorArray([LoDTensor(2 * y + 1), LoDTensor(y)])},
        name="arrays",
    ),
]
