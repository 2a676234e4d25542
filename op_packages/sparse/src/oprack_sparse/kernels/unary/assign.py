"""Kernel of assign, an op of the pack tensor, over sparse tensors: copies of them."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS


@kernel("assign", dtypes=FLOATS | INTEGERS | BOOL)
def assign_sparse(X: SparseTensor | None = None) -> SparseTensor | None:
    """The same elements with a copy of the values."""
    return None if X is None else X.with_values(X.values.copy())
