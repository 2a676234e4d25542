"""Kernel of grad_add."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._broadcast import align, broadcasting
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("grad_add", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("add"))
def grad_add(X: Any, Y: Any, *, axis: int, xp: Any) -> Any:
    """X + Y."""
    return xp.add(*align(X, Y, axis, "grad_add"))
