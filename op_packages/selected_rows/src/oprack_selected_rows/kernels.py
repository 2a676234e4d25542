"""Kernels, imported on the first use of their op."""

from __future__ import annotations

from oprack.device import merged_rows
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS, INTEGERS


# get_tensor_from_selected_rows ----------------------------------------------------------------------------------------
@kernel("get_tensor_from_selected_rows", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def get_tensor_from_selected_rows(X: SelectedRows) -> Array:
    return X.value.copy()


# merge_selected_rows --------------------------------------------------------------------------------------------------
@kernel("merge_selected_rows", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def merge_selected_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    return merged_rows(X, xp)
