"""Kernel of increment."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH


@kernel("increment", place=BOTH, dtypes=FLOATS | HALF_FLOATS | INTEGERS)
def increment(X, *, step, xp):
    """X + step."""
    if X.dtype.kind in "iu" and not math.isfinite(step):
        raise InvalidArgumentError(f"op increment: step is {step}; expected a finite one, since X is {X.dtype}")
    return xp.add(X, X.dtype.type(math.trunc(step) if X.dtype.kind in "iu" else step))
