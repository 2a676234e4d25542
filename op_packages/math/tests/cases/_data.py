"""Values that cases of many ops share."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SelectedRows

f32 = np.float32
nan, inf = np.nan, np.inf
x = np.arange(24, dtype=f32).reshape(2, 3, 4) / 8 + 0.25
y = np.array([1.5, -2.0, 0.5], f32)
empty = np.zeros((0, 3), f32)
rows = SelectedRows([3, 0, 3], np.array([[1, 4], [9, 16], [3, 12]], f32), 5)
no_rows = SelectedRows([], np.zeros((0, 2), f32), 5)
lod = [[0, 0, 2, 2]]


def floats(*values):
    return np.array(values, f32)


def ints(*values):
    return np.array(values, np.int32)


def with_values(value):
    """`rows` with other values."""
    return SelectedRows(rows.rows, np.asarray(value, f32), rows.height)


def merged(first, second):
    """SelectedRows with the rows of `rows`, each listed once."""
    return SelectedRows([0, 3], np.array([first, second], f32), rows.height)
