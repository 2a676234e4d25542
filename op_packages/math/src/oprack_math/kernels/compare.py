"""Kernels of comparisons."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, align

COMPARABLE = FLOATS | HALF_FLOATS | INTEGERS | BOOL


def _equal(x, y, xp):
    if x.dtype.kind == "f" and x.dtype.itemsize > 2:
        # the largest value of the dtype that is below 1e-8: float32's 1e-8 itself is one, float64's is not
        limit = 1e-8 if x.dtype.itemsize == 4 else float.fromhex("0x1.5798ee2308c39p-27")
        return (xp.abs(x - y) <= limit) | (x == y)  # infinities differ by NaN
    return x == y


@kernel("equal", place=BOTH, dtypes=COMPARABLE)
def equal(X, Y, *, axis, xp):
    """X equals Y, within 1e-8 for float32 and float64."""
    return _equal(*align(X, Y, axis, "equal"), xp)


@kernel("not_equal", place=BOTH, dtypes=COMPARABLE)
def not_equal(X, Y, *, axis, xp):
    """The contrary of equal."""
    return ~_equal(*align(X, Y, axis, "not_equal"), xp)


@kernel("greater_than", place=BOTH, dtypes=COMPARABLE)
def greater_than(X, Y, *, axis, xp):
    """X > Y."""
    return xp.greater(*align(X, Y, axis, "greater_than"))


@kernel("greater_equal", place=BOTH, dtypes=COMPARABLE)
def greater_equal(X, Y, *, axis, xp):
    """X >= Y."""
    return xp.greater_equal(*align(X, Y, axis, "greater_equal"))


@kernel("less_than", place=BOTH, dtypes=COMPARABLE)
def less_than(X, Y, *, axis, xp):
    """X < Y."""
    return xp.less(*align(X, Y, axis, "less_than"))


@kernel("less_equal", place=BOTH, dtypes=COMPARABLE)
def less_equal(X, Y, *, axis, xp):
    """X <= Y."""
    return xp.less_equal(*align(X, Y, axis, "less_equal"))
