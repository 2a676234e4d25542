"""The dtype in which an operator computes, for Variables and eager tensors alike.

Of two dtypes it is the smallest that holds both, with three liberties that PyTorch and Paddle take as well: an integer
beside a float becomes that float, float16 beside bfloat16 gives float32, and `/` divides integers and bool as float32.
A Python number beside a tensor only counts by its kind: an integer leaves integers and floats what they are, a float
makes float32 of integers; a bool tensor beside an integer counts as int64. Comparisons of integers with floats are made
in float64, since float32 does not tell large integers apart.
"""

from __future__ import annotations

import numbers
from functools import cache
from typing import Any

import numpy as np

COMPARISONS = ("less", "less_or_equal", "greater", "greater_or_equal", "equals", "differs")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_KNOWN = {*_FLOATS, *_COMPLEX, *_INTEGERS, "bool"}
RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _INTEGERS}
"""The least and the greatest number of each integer dtype."""
EXACT = 1 << 24
"""Integers up to here are exact in float32, which attributes such as those of the role affine are."""


def is_floating(dtype: str | None) -> bool:
    """Whether it has fractions, complex dtypes included."""
    return dtype in _FLOATS or dtype in _COMPLEX


@cache
def dtype_of_both(x: str | None, y: str | None, role: str) -> str | None:
    """The dtype for two operands of a role of oprack.op.vocabulary; None where there is none, or it is not known."""
    if x is None or y is None or not {x, y} <= _KNOWN:
        return None
    if role == "divide" and not (is_floating(x) or is_floating(y)):
        return "float32"
    if x == y:
        return x
    if x in _COMPLEX or y in _COMPLEX:
        return "complex128" if {"float64", "complex128"} & {x, y} else "complex64"
    if x in _FLOATS or y in _FLOATS:
        return _float_of(x, y, role)
    return str(np.promote_types(x, y))


def _float_of(x: str, y: str, role: str) -> str:
    """The float for two floats, or for one beside an integer."""
    floats = [d for d in (x, y) if d in _FLOATS]
    if len(floats) == 2:  # neither half holds the numbers of the other
        return "float32" if set(floats) == {"float16", "bfloat16"} else max(floats, key=_FLOATS.index)
    return "float64" if role in COMPARISONS and {"int32", "int64"} & {x, y} else floats[0]


def dtype_beside_number(dtype: str | None, number: Any, role: str) -> str | None:
    """The dtype for a tensor of `dtype` and a number; None where `dtype` is."""
    if isinstance(number, complex | np.complexfloating):
        return dtype if dtype in _COMPLEX else "complex128" if dtype == "float64" else "complex64"
    if dtype not in (*_INTEGERS, "bool"):
        return dtype
    if role == "divide":
        return "float32"
    if isinstance(number, bool | np.bool_):
        return dtype
    if isinstance(number, numbers.Integral):
        return "int64" if dtype == "bool" else dtype
    return "float64" if role in COMPARISONS else "float32"
