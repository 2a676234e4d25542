"""Kernel of c_split."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES


@kernel("c_split", place=PLACES, dtypes=NUMBERS)
def c_split(X: Array, *, rank: int, nranks: int) -> Array:
    size = X.shape[-1] // nranks
    return X[..., rank * size : (rank + 1) * size].copy()
