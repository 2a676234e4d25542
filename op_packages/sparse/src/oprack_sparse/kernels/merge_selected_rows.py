"""Kernel of merge_selected_rows."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS, INTEGERS


@kernel("merge_selected_rows", dtypes=FLOATS | INTEGERS)
def merge_selected_rows(X: SelectedRows):
    return X.merged()
