"""Kernels of assign, one for each kind of variable."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows


@kernel("assign", place=("cpu", "cuda"))
def assign(X: Array | None = None) -> Array:
    return None if X is None else X.copy()


@kernel("assign", place=("cpu", "cuda"))
def assign_rows(X: SelectedRows = None) -> SelectedRows:
    return SelectedRows(X.rows.copy(), X.value.copy(), X.height, place=X.place, check=False)


@kernel("assign", place=("cpu", "cuda"))
def assign_array(X: LoDTensorArray = None) -> LoDTensorArray:
    return LoDTensorArray(
        None if t is None else LoDTensor(t.array.copy(), t.lod, place=t.place, check=False) for t in X
    )
