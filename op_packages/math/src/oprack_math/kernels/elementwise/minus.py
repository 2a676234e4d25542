"""Kernel of minus."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("minus", place=BOTH, dtypes=NUMBERS)
def minus(X: Any, Y: Any) -> Any:
    """X - Y."""
    return X - Y
