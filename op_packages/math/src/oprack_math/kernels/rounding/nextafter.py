"""Kernel of nextafter."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("nextafter", place=BOTH, dtypes=REAL_FLOATS)
def nextafter(x: Array, y: Array, *, xp: ArrayModule) -> Array:
    """The next number towards y."""
    return xp.nextafter(x, y)
