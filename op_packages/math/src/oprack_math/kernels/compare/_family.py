"""What comparisons share."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule
from oprack.types import BOOL

from oprack_math.kernels._sets import REAL

COMPARABLE = REAL | BOOL


def equal_within_tolerance(x: Array, y: Array, xp: ArrayModule) -> Array:
    """x == y, where float32 and float64 may differ by 1e-8."""
    if x.dtype.kind == "f" and x.dtype.itemsize > 2:
        # the largest value of the dtype that is below 1e-8: float32's 1e-8 itself is one, float64's is not
        limit = 1e-8 if x.dtype.itemsize == 4 else float.fromhex("0x1.5798ee2308c39p-27")
        return (xp.abs(x - y) <= limit) | (x == y)  # infinities differ by NaN
    return x == y
