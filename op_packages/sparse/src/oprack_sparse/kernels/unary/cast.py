"""Kernel of cast, an op of the pack tensor, over sparse tensors: `x.astype`."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SparseTensor, numpy_dtype
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS


@kernel("cast", dtypes=FLOATS | HALF_FLOATS | INTEGERS | BOOL)
def cast_sparse(X: SparseTensor, *, out_dtype: int) -> SparseTensor:
    """The values in another dtype."""
    return X.with_values(X.values.astype(numpy_dtype(out_dtype)))
