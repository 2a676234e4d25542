"""Operands of the standard's functions: Python scalars and tensors of several dtypes become tensors of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack import Tensor, to_tensor
from oprack.tensor import numpy_dtype

from oprack_array_api.dtypes import promoted, scalar_dtype

SCALARS = (int, float, complex)


def place_of(x: Any) -> Any:
    """The place of a tensor; None of what stands for one while a program is written."""
    return x.place if isinstance(x, Tensor) else None


def numel(x: Any) -> int:
    """The number of elements."""
    return math.prod(x.shape)


def named(x: Any) -> str:
    """A tensor in words, for messages."""
    return x.describe() if isinstance(x, Tensor) else repr(x)


def constant(value: Any, dtype: object, like: Any) -> Tensor:
    """A tensor of rank 0 at the place of another one."""
    return to_tensor(np.asarray(value, numpy_dtype(dtype)), place=place_of(like))


def cast(x: Any, dtype: object) -> Any:
    """x as a dtype; x itself where it has it."""
    return x if x.dtype == dtype else x.astype(dtype)


def together(x1: Any, x2: Any, name: str) -> tuple[Any, Any]:
    """Both as tensors of one dtype. Raises TypeError for two scalars, or dtypes that have none in common."""
    if isinstance(x1, SCALARS):
        if isinstance(x2, SCALARS):
            raise TypeError(f"{name}: expected a tensor for at least one of {x1!r} and {x2!r}")
        dtype = scalar_dtype(x1, x2.dtype)
        return constant(x1, dtype, x2), cast(x2, dtype)
    if isinstance(x2, SCALARS):
        dtype = scalar_dtype(x2, x1.dtype)
        return cast(x1, dtype), constant(x2, dtype, x1)
    for x in (x1, x2):
        require_tensor(x, name)
    dtype = promoted(x1.dtype, x2.dtype)
    return cast(x1, dtype), cast(x2, dtype)


def require_tensor(x: Any, name: str) -> Any:
    """x. Raises TypeError unless it is a tensor (or stands for one in a program)."""
    if not hasattr(x, "_apply"):
        raise TypeError(f"{name}: got {type(x).__name__}; expected a tensor: xp.asarray(x)")
    return x


def axes_of(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Dims as numbers from 0: all for None. Raises IndexError for one that is not there."""
    given = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    found = []
    for a in given:
        if not -rank <= a < max(rank, 1):
            raise IndexError(f"{name}: axis {a} of a tensor with {rank} dims")
        found.append(int(a) % max(rank, 1))
    return tuple(found)
