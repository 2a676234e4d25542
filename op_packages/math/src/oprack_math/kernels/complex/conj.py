"""Kernel of conj."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("conj", place=BOTH, dtypes=NUMBERS)
def conj(X: Array, *, xp: ArrayModule) -> Array:
    """The complex conjugate; a copy of real numbers."""
    return xp.conjugate(X) if X.dtype.kind == "c" else X.copy()
