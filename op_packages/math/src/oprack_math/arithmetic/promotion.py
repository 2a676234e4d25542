"""Type promotion: the dtype in which an operator computes, for Variables and eager tensors alike.

Two dtypes are promoted to the smallest that holds both, with three exceptions, as in PyTorch and Paddle: an integer and
a float give that float, float16 and bfloat16 give float32, and `/` divides integers and bools as float32. Of a Python
number beside a tensor only the kind counts: an int leaves integer and float tensors unchanged and turns bool into
int64; a float turns integers into float32. Integers are compared with floats in float64, since float32 can't tell large
integers apart.
"""

from __future__ import annotations

import numbers
from functools import cache
from typing import Any

import numpy as np
from oprack.types import ALL_DTYPES, INTEGERS

COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
DIVISION = "elementwise_div"
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")


def is_floating(dtype: str | None) -> bool:
    """Whether a dtype is floating or complex."""
    return dtype in _FLOATS or dtype in _COMPLEX


@cache
def dtype_of_both(x: str | None, y: str | None, op_type: str) -> str | None:
    """The dtype for two operands of an op; None when a dtype is unknown."""
    if x is None or y is None or not {x, y} <= ALL_DTYPES:
        return None
    if op_type == DIVISION and not (is_floating(x) or is_floating(y)):
        return "float32"
    if x == y:
        return x
    if x in _COMPLEX or y in _COMPLEX:
        return "complex128" if {"float64", "complex128"} & {x, y} else "complex64"
    if x in _FLOATS or y in _FLOATS:
        return _float_of(x, y, op_type)
    return str(np.promote_types(x, y))


def _float_of(x: str, y: str, op_type: str) -> str:
    """The dtype for two floats, or for a float and an integer."""
    floats = [d for d in (x, y) if d in _FLOATS]
    if len(floats) == 2:  # Neither of float16 and bfloat16 holds all numbers of the other.
        return "float32" if set(floats) == {"float16", "bfloat16"} else max(floats, key=_FLOATS.index)
    return "float64" if op_type in COMPARISONS and {"int32", "int64"} & {x, y} else floats[0]


def dtype_beside_number(dtype: str | None, number: Any, op_type: str) -> str | None:
    """The dtype for a tensor of `dtype` and a number; None when `dtype` is None."""
    if isinstance(number, complex | np.complexfloating):
        return dtype if dtype in _COMPLEX else "complex128" if dtype == "float64" else "complex64"
    if dtype not in INTEGERS and dtype != "bool":
        return dtype
    if op_type == DIVISION:
        return "float32"
    if isinstance(number, bool | np.bool_):
        return dtype
    if isinstance(number, numbers.Integral):
        return "int64" if dtype == "bool" else dtype
    return "float64" if op_type in COMPARISONS else "float32"


def promoted(x: Any, y: Any, op_type: str) -> tuple[Any, Any]:
    """Both in the dtype of the operation."""
    wanted = dtype_of_both(x.dtype, y.dtype, op_type)
    return tuple(v if wanted is None or v.dtype == wanted else v.astype(wanted) for v in (x, y))
