"""Kernels of cast."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SelectedRows, numpy_dtype


def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):  # NaN and values out of range convert as the machine does it
        return array.astype(dtype)


@kernel("cast", place=("cpu", "cuda"))
def cast(X: Array, *, out_dtype: int) -> Array:
    return _converted(X, numpy_dtype(out_dtype))


@kernel("cast", place=("cpu", "cuda"))
def cast_rows(X: SelectedRows, *, out_dtype: int):
    value = _converted(X.value, numpy_dtype(out_dtype))
    return SelectedRows(X.rows, value, X.height, place=X.place, check=False)
