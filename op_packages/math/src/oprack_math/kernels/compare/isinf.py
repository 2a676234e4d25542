"""Kernel of isinf."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("isinf", place=BOTH, dtypes=REAL)
def isinf(X: Any, *, xp: Any) -> Any:
    """Whether any element is infinite."""
    return xp.isinf(X).any().reshape(1)
