"""Cases of mul."""

from __future__ import annotations

from oprack.tensor import LoDTensor
from oprack.testing import OpCase

from .._data import lod, x

CASES = [
    OpCase(
        "mul",
        {"X": LoDTensor(x, lod), "Y": x[0].T.copy()},
        {"x_num_col_dims": 2},
        {"Out": LoDTensor(x @ x[0].T, lod)},
        ["X", "Y"],
        name="lod",
    ),
]
