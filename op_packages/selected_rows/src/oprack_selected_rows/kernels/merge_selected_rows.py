"""Kernel of merge_selected_rows."""

from __future__ import annotations

from oprack.device import merged_rows
from oprack.kernel import ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS, INTEGERS


@kernel("merge_selected_rows", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def merge_selected_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    return merged_rows(X, xp)
