"""Kernel of as_real."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX

from oprack_math.kernels._sets import BOTH


@kernel("as_real", place=BOTH, dtypes=COMPLEX)
def as_real(X: Array, *, xp: ArrayModule) -> Array:
    """Both parts along a new last dim."""
    return xp.stack([X.real, X.imag], axis=-1)
