"""Cases of sgd: a table that holds some rows only."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SelectedRows
from oprack.testing import OpCase

from .._data import rate

TABLE = SelectedRows([2, 5, 1], np.arange(6.0).reshape(3, 2), 8)
GRAD = SelectedRows([5, 1, 5], np.ones((3, 2)), 8)
UPDATED = SelectedRows([2, 5, 1], np.array([[0.0, 1.0], [1.0, 2.0], [3.5, 4.5]]), 8)
CASE = OpCase(
    "sgd", {"Param": TABLE, "LearningRate": rate, "Grad": GRAD}, {}, {"ParamOut": UPDATED}, name="rows of rows"
)
