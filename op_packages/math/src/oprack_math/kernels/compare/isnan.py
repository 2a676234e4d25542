"""Kernel of isnan."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("isnan", place=BOTH, dtypes=REAL)
def isnan(X: Any, *, xp: Any) -> Any:
    """Whether any element is NaN."""
    return xp.isnan(X).any().reshape(1)
