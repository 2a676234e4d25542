"""Kernel of get_tensor_from_selected_rows."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS, INTEGERS


@kernel("get_tensor_from_selected_rows", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def get_tensor_from_selected_rows(X: SelectedRows) -> Array:
    return X.value.copy()
