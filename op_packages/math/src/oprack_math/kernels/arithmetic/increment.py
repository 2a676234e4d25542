"""Kernel of increment."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("increment", place=BOTH, dtypes=REAL)
def increment(X: Array, *, step: float, xp: ArrayModule) -> Array:
    """X + step."""
    if X.dtype.kind in "iu" and not math.isfinite(step):
        raise InvalidArgumentError(f"op increment: step is {step}; expected a finite one, since X is {X.dtype}")
    return xp.add(X, X.dtype.type(math.trunc(step) if X.dtype.kind in "iu" else step))
