"""Kernels of isfinite_v2, isinf_v2 and isnan_v2."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows
from oprack.types import BOOL, COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH

ANY = FLOATS | HALF_FLOATS | INTEGERS | COMPLEX | BOOL


def _rows(x, value):
    return SelectedRows(x.rows.copy(), value, x.height, place=x.place, check=False)


@kernel("isfinite_v2", place=BOTH, dtypes=ANY)
def isfinite_v2(X, *, xp):
    """Neither infinite nor NaN."""
    return xp.isfinite(X)


@kernel("isinf_v2", place=BOTH, dtypes=ANY)
def isinf_v2(X, *, xp):
    """Infinite."""
    return xp.isinf(X)


@kernel("isnan_v2", place=BOTH, dtypes=ANY)
def isnan_v2(X, *, xp):
    """NaN."""
    return xp.isnan(X)


@kernel("isfinite_v2", place=BOTH, dtypes=ANY)
def isfinite_v2_rows(X: SelectedRows, *, xp):
    """The same for every value of the rows."""
    return _rows(X, xp.isfinite(X.value))


@kernel("isinf_v2", place=BOTH, dtypes=ANY)
def isinf_v2_rows(X: SelectedRows, *, xp):
    """The same for every value of the rows."""
    return _rows(X, xp.isinf(X.value))


@kernel("isnan_v2", place=BOTH, dtypes=ANY)
def isnan_v2_rows(X: SelectedRows, *, xp):
    """The same for every value of the rows."""
    return _rows(X, xp.isnan(X.value))
