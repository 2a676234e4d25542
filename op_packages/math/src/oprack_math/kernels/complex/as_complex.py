"""Kernel of as_complex."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.complex._family import of_parts


@kernel("as_complex", place=BOTH, dtypes=FLOATS)
def as_complex(X: Array, *, xp: ArrayModule) -> Array:
    """Pairs along the last dim as complex numbers."""
    return of_parts(X[..., 0], X[..., 1], xp)
