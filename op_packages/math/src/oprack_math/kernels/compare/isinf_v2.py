"""Kernels of isinf_v2."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import ALL_DTYPES

from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH


@kernel("isinf_v2", place=BOTH, dtypes=ALL_DTYPES)
def isinf_v2(X: Array, *, xp: ArrayModule) -> Array:
    """Infinite."""
    return xp.isinf(X)


@kernel("isinf_v2", place=BOTH, dtypes=ALL_DTYPES)
def isinf_v2_rows(X: SelectedRows, *, xp: ArrayModule):
    """The same for every value of the rows."""
    return with_values(X, xp.isinf(X.value))
