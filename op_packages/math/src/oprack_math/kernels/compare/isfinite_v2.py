"""Kernels of isfinite_v2."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import ALL_DTYPES

from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH


@kernel("isfinite_v2", place=BOTH, dtypes=ALL_DTYPES)
def isfinite_v2(X: Array, *, xp: ArrayModule) -> Array:
    """Neither infinite nor NaN."""
    return xp.isfinite(X)


@kernel("isfinite_v2", place=BOTH, dtypes=ALL_DTYPES)
def isfinite_v2_rows(X: SelectedRows, *, xp: ArrayModule):
    """The same for every value of the rows."""
    return with_values(X, xp.isfinite(X.value))
