"""Kernel of nextafter."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("nextafter", place=BOTH, dtypes=REAL_FLOATS)
def nextafter(x: Any, y: Any, *, xp: Any) -> Any:
    """The next number towards y."""
    return xp.nextafter(x, y)
