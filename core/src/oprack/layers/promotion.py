"""Type promotion: the dtype in which an operator computes, for Variables and eager tensors alike.

Two dtypes are promoted to the smallest that holds both, with three exceptions, as in PyTorch and Paddle: an integer and
a float give that float, float16 and bfloat16 give float32, and `/` divides integers and bools as float32. Of a Python
number beside a tensor only the kind counts: an int leaves integer and float tensors unchanged and turns bool into
int64; a float turns integers into float32. Integers are compared with floats in float64, since float32 can't tell large
integers apart.
"""

from __future__ import annotations

import math
import numbers
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.packs.vocabulary import op_for
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack.layers.variable import Variable

COMPARISONS = ("less", "less_or_equal", "greater", "greater_or_equal", "equals", "differs")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_KNOWN = {*_FLOATS, *_COMPLEX, *_INTEGERS, "bool"}
RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _INTEGERS}
"""The least and the greatest number of each integer dtype."""
EXACT = 1 << 24
"""Integers up to this are exact in float32, the dtype of float attributes, such as those of the role affine."""


DOUBLE = ("float64", "complex128")
"""Dtypes whose numbers an attribute, which is float32, may round."""
_LARGEST = float(np.finfo(np.float32).max)


def is_single(number: float) -> bool:
    """Whether float32 holds a number."""
    return not math.isfinite(number) or (abs(number) <= _LARGEST and float(np.float32(number)) == number)


def rounded_by_attribute(dtype: str | None, number: Any) -> bool:
    """Whether a float32 attribute would round a number that the dtype holds."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    if dtype in RANGES:
        low, high = RANGES[dtype]
        return isinstance(number, int) and abs(number) > EXACT and low <= number <= high
    return dtype in DOUBLE and not is_single(float(number))


def is_floating(dtype: str | None) -> bool:
    """Whether a dtype is floating or complex."""
    return dtype in _FLOATS or dtype in _COMPLEX


@cache
def dtype_of_both(x: str | None, y: str | None, role: str) -> str | None:
    """The dtype for two operands of a role of oprack.op.vocabulary; None when a dtype is unknown."""
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
    """The dtype for two floats, or for a float and an integer."""
    floats = [d for d in (x, y) if d in _FLOATS]
    if len(floats) == 2:  # Neither of float16 and bfloat16 holds all numbers of the other.
        return "float32" if set(floats) == {"float16", "bfloat16"} else max(floats, key=_FLOATS.index)
    return "float64" if role in COMPARISONS and {"int32", "int64"} & {x, y} else floats[0]


def dtype_beside_number(dtype: str | None, number: Any, role: str) -> str | None:
    """The dtype for a tensor of `dtype` and a number; None when `dtype` is None."""
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


def variable(x: Any) -> Variable:
    return x  # type: ignore[no-any-return]


def append(role: str, like: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> Variable:
    return like._apply(op_for(role), inputs, attrs)  # type: ignore[no-any-return]


def named(x: Any) -> str:
    return x.describe() if hasattr(x, "describe") else f"variable {x.name!r}"


def out_of_range(x: Any, number: Any, operation: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{operation}: {number} is no {x.dtype}, which {named(x)} is; expected a number from "
        f"{RANGES[x.dtype][0]} to {RANGES[x.dtype][1]}; cast the tensor first: x.astype('int64')"
    )


def constant(x: Any, number: Any) -> Variable:
    if isinstance(number, complex):
        raise InvalidArgumentError(
            f"a complex number beside {named(x)}: {number}; expected a real number, or a tensor: "
            "oprack.to_tensor(np.array(number)), in a program oprack.layers.assign(np.array([number]))"
        )
    value = number if isinstance(number, numbers.Integral) else float(number)
    attrs = {
        "shape": [1] if x.shape else [],
        "dtype": int(dtype_enum(x.dtype)),
        "value": float(value),
        "str_value": str(int(value)) if isinstance(value, numbers.Integral) else repr(value),
    }
    out: Any = append("constant", x, {}, attrs)
    out.stop_gradient = True
    return out.to(x.place) if hasattr(x, "__oprack_value__") else out  # type: ignore[no-any-return]


def promoted(x: Any, y: Any, role: str) -> tuple[Any, Any]:
    """Both in the dtype of the operation."""
    wanted = dtype_of_both(x.dtype, y.dtype, role)
    return tuple(v if wanted is None or v.dtype == wanted else v.astype(wanted) for v in (x, y))
