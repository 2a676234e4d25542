"""Kernel of sign."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("sign", place=BOTH, dtypes=REAL)
def sign(X: Array, *, xp: ArrayModule) -> Array:
    """-1, 0 or 1."""
    return xp.sign(X)
