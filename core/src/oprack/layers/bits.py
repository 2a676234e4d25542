"""Operators on bits: &, |, ^ and ~ of integers or of bools, << and >> of integers."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.layers.operands import append, constant, named, out_of_range, promoted
from oprack.layers.promotion import RANGES

if TYPE_CHECKING:
    from oprack.layers.variable import Variable


class BitOperators:
    """What Operators inherits. A Python int beside a tensor of integers takes its dtype."""

    __slots__ = ()

    def __and__(self, other: Any) -> Variable:
        return _bits(self, other, "and", "&")

    __rand__ = __and__

    def __or__(self, other: Any) -> Variable:
        return _bits(self, other, "or", "|")

    __ror__ = __or__

    def __xor__(self, other: Any) -> Variable:
        return _bits(self, other, "xor", "^")

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Variable:
        return _bits(self, other, "left_shift", "<<")

    def __rlshift__(self, other: Any) -> Variable:
        return _bits(self, other, "left_shift", "<<", reverse=True)

    def __rshift__(self, other: Any) -> Variable:
        return _bits(self, other, "right_shift", ">>")

    def __rrshift__(self, other: Any) -> Variable:
        return _bits(self, other, "right_shift", ">>", reverse=True)

    def __invert__(self) -> Variable:
        x: Any = self
        if x.dtype == "bool":
            return append("not", x, {"X": x}, {})
        _require_integers("~", x)
        return append("bits_not", x, {"X": x}, {})


def _bits(left: Any, right: Any, name: str, sign: str, reverse: bool = False) -> Variable:
    x, y = left, right if hasattr(right, "_apply") else _operand(left, right, sign)
    role = name
    if x.dtype != "bool" or getattr(y, "dtype", None) != "bool" or name.endswith("shift"):
        _require_integers(sign, x, y, shift=name.endswith("shift"))
        x, y = promoted(x, y, name)
        role = name if name.endswith("shift") else f"bits_{name}"
    out = append(role, left, {"X": y, "Y": x} if reverse else {"X": x, "Y": y}, {})
    out.stop_gradient = True
    return out


def _operand(x: Any, y: Any, sign: str) -> Any:
    """The other operand, where it is a number or an array, as a Variable or tensor with the dtype of x."""
    if isinstance(y, bool | np.bool_):
        return constant(x, bool(y)) if x.dtype == "bool" else y
    if isinstance(y, numbers.Integral) and x.dtype in RANGES:
        if not RANGES[x.dtype][0] <= int(y) <= RANGES[x.dtype][1]:
            raise out_of_range(x, y, f"operator {sign}")
        return constant(x, y)
    if isinstance(y, np.ndarray | list) and hasattr(x, "__oprack_value__"):
        array = np.asarray(y)
        if array.dtype == x._meta.dtype or (isinstance(y, list) and array.dtype.kind == "i" and x.dtype in RANGES):
            return type(x).like(array, x)
    return y


def _require_integers(sign: str, *operands: Any, shift: bool = False) -> None:
    """Raise InvalidArgumentError unless all operands are integers."""
    for x in operands:
        if not hasattr(x, "_apply") or x.dtype not in RANGES:
            what = named(x) if hasattr(x, "_apply") else f"{x!r} ({type(x).__name__})"
            expected = "integers" if shift else "bool tensors, such as x > 0 or x != 0, or integers for both"
            raise InvalidArgumentError(f"operator {sign}: an operand is {what}; expected {expected}")
