"""Arithmetic for which dtypes have rules of their own: sums of 16-bit floats, complex numbers, integer division."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """dtype in which sums of `dtype` are taken: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtype.name in ("float16", "bfloat16") else dtype


def conjugate(x: Array, xp: ArrayModule) -> Array:
    """Complex conjugate; real arrays as they are."""
    return xp.conj(x) if x.dtype.kind == "c" else x


def divide(x: Array, y: Array, xp: ArrayModule, out: Array | None = None) -> Array:
    """x / y; integers towards zero, booleans as x and y."""
    kind = x.dtype.kind
    if kind == "b":
        return xp.logical_and(x, y, out=out)
    if kind in "iu":
        return xp.floor_divide(x - xp.fmod(x, y), y, out=out)
    return xp.divide(x, y, out=out)
