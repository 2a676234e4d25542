"""Arithmetic for which dtypes have rules of their own: sums of 16-bit floats, complex numbers, integer division."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """dtype in which sums of `dtype` are taken: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtype.name in ("float16", "bfloat16") else dtype


def rounded_once(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose formula sees 16-bit floats as float32, so that only its result is rounded, to the first's dtype.

    Results of another dtype, such as positions, stay as they are.
    """

    def back(value: Any, dtype: Any) -> Any:
        return value.astype(dtype) if value is not None and value.dtype == np.float32 else value

    @wraps(formula)
    def computed(*inputs: Any, **named: Any) -> Any:
        dtype = inputs[0].dtype
        if dtype.itemsize != 2 or dtype.kind in "iu":
            return formula(*inputs, **named)
        wide = (x.astype(np.float32) if getattr(x, "dtype", None) == dtype else x for x in inputs)
        result = formula(*wide, **named)
        return tuple(back(r, dtype) for r in result) if isinstance(result, tuple) else back(result, dtype)

    return computed


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
