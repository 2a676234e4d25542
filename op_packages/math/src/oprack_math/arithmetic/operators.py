"""Operators of whatever ops take, Variables and tensors alike: each calls `x._apply` with the op that computes it.

Results carry the LoD of the left operand. Of two dtypes, the one that holds both is computed in: see promotion.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.types import VarType, dtype_enum
from oprack_tensor.ranges import DOUBLE, EXACT, RANGES, is_single

from oprack_math.arithmetic.promotion import COMPARISONS, DIVISION, dtype_beside_number, is_floating, promoted

if TYPE_CHECKING:
    from oprack.layers import Variable

_NUMBERS = (int, float, complex, np.generic, numbers.Number)


def _between(op_type: str) -> tuple[Callable[..., Variable], Callable[..., Variable]]:
    """`x op other` and `other op x`."""

    def forward(self: Any, other: Any) -> Variable:
        return _binary(self, other, op_type)

    def backward(self: Any, other: Any) -> Variable:
        return _binary(self, other, op_type, reverse=True)

    return forward, backward


add, radd = _between("elementwise_add")
sub, rsub = _between("elementwise_sub")
mul, rmul = _between("elementwise_mul")
truediv, rtruediv = _between(DIVISION)
floordiv, rfloordiv = _between("elementwise_floordiv")
mod, rmod = _between("elementwise_mod")
pow, rpow = _between("elementwise_pow")
matmul, _ = _between("matmul_v2")
lt, _ = _between("less_than")
le, _ = _between("less_equal")
gt, _ = _between("greater_than")
ge, _ = _between("greater_equal")
eq, _ = _between("equal")
ne, _ = _between("not_equal")


def pos(self: Any) -> Variable:
    return self


def neg(self: Any) -> Variable:
    if self.dtype == "bool":
        raise InvalidArgumentError(f"{_named(self)} is bool, which has no negative; use x.logical_not() or x == False")
    return self._apply("scale", {"X": self}, {"scale": -1.0})


def abs(self: Any) -> Variable:
    return self._apply("abs", {"X": self}, {})


def _binary(left: Any, right: Any, op_type: str, reverse: bool = False) -> Variable:
    x: Any = left
    if isinstance(right, _NUMBERS):
        x, right, done = _with_number(left, right, op_type, reverse)
        if done:
            return x
        right = _constant(x, right)
    elif hasattr(right, "as_number_of"):  # one that a captured program knows when it runs
        wanted = dtype_beside_number(x.dtype, right.like, op_type)
        x, right = x if x.dtype == wanted else x.astype(wanted), right.as_number_of(wanted)
    elif not hasattr(right, "_apply"):
        right = _operand(left, right, op_type)
    x, y = promoted(x, right, op_type)
    if reverse:
        x, y = y, x
    out = left._apply(op_type, {"X": x, "Y": y}, {})
    if op_type in COMPARISONS:
        out.stop_gradient = True
    return out


def _operand(x: Any, other: Any, op_type: str) -> Any:
    """Another operand that is no number as one that ops take, where x can make it so."""
    found = x._operand(other)
    if found is None:
        raise InvalidArgumentError(
            f"op {op_type}: the other operand of {_named(x)} is {type(other).__name__}; expected a Variable "
            "or a number; make a Variable of an array with oprack.layers.assign(array)"
        )
    return found


def _named(x: Any) -> str:
    return x.describe() if hasattr(x, "describe") else f"variable {x.name!r}"


# Numbers --------------------------------------------------------------------------------------------------------------
def _with_number(x: Any, number: Any, op_type: str, reverse: bool) -> tuple[Any, Any, bool]:
    """(result, None, True) when op scale or pow does it, else (the variable, the number, False) in a dtype that suits
    both.
    """
    wanted = dtype_beside_number(x.dtype, number, op_type)
    if wanted != x.dtype:
        x = x.astype(wanted)
    whole = isinstance(number, numbers.Integral) and x.dtype in RANGES
    if whole and not RANGES[x.dtype][0] <= int(number) <= RANGES[x.dtype][1]:
        if op_type in COMPARISONS:  # the answer is known, and an infinity gives it
            return x.astype("float64"), math.copysign(math.inf, int(number)), False
        raise _out_of_range(x, number, f"op {op_type}")
    power = op_type == "elementwise_pow" and not reverse
    if whole and power and int(number) < 0:
        raise InvalidArgumentError(
            f"op {op_type}: {_named(x)} to the power of {number} has fractions, which {x.dtype} can't hold; cast "
            f"it first: x.astype('float32') ** {number}"
        )
    if x.dtype == "bool" or not _is_exact(number, whole, x):
        return x, number, False
    if power and is_floating(x.dtype):
        return x._apply("pow", {"X": x}, {"factor": float(number)}), None, True
    line = _line(op_type, number, reverse)
    if line is None or (op_type == DIVISION and not _is_exact(line[0], False, x)):
        return x, number, False
    return x._apply("scale", {"X": x}, dict(zip(("scale", "bias"), line, strict=True))), None, True


def _is_exact(number: Any, whole: bool, x: Any) -> bool:
    """Whether an attribute holds the number: it is float32, which has no complex numbers and not all large integers."""
    if isinstance(number, complex) or (whole and not -EXACT <= int(number) <= EXACT):
        return False
    if x.dtype not in DOUBLE or is_single(float(number)):
        return True
    # only the op with the attribute knows sparse rows
    return x.is_sparse if hasattr(x, "__oprack_value__") else x.type == VarType.SELECTED_ROWS


def _line(op_type: str, number: Any, reverse: bool) -> tuple[float, float] | None:
    """(scale, bias), so that the operator's result is scale * x + bias; None where there are none."""
    if op_type == "elementwise_add":
        return 1.0, float(number)
    if op_type == "elementwise_sub":
        return (-1.0, float(number)) if reverse else (1.0, -float(number))
    if op_type == "elementwise_mul":
        return float(number), 0.0
    if op_type == DIVISION and not reverse and number != 0:
        return 1.0 / float(number), 0.0
    return None


def _constant(x: Any, number: Any) -> Variable:
    """A number as an operand beside x."""
    if isinstance(number, complex):
        raise InvalidArgumentError(
            f"a complex number beside {_named(x)}: {number}; expected a real number, or a tensor: "
            "oprack.to_tensor(np.array(number)), in a program oprack.layers.assign(np.array([number]))"
        )
    value = number if isinstance(number, numbers.Integral) else float(number)
    attrs = {
        "shape": [1] if x.ndim else [],
        "dtype": int(dtype_enum(x.dtype)),
        "value": float(value),
        "str_value": str(int(value)) if isinstance(value, numbers.Integral) else repr(value),
    }
    out: Any = x._apply("fill_constant", {}, attrs)
    out.stop_gradient = True
    return out.to(x.place) if hasattr(x, "__oprack_value__") else out


def _out_of_range(x: Any, number: Any, operation: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{operation}: {number} is no {x.dtype}, which {_named(x)} is; expected a number from "
        f"{RANGES[x.dtype][0]} to {RANGES[x.dtype][1]}; cast the tensor first: x.astype('int64')"
    )


# Bits: &, |, ^ and ~ of integers or of bools, << and >> of integers ---------------------------------------------------
def and_(self: Any, other: Any) -> Variable:
    return _bits(self, other, "and", "&")


def or_(self: Any, other: Any) -> Variable:
    return _bits(self, other, "or", "|")


def xor(self: Any, other: Any) -> Variable:
    return _bits(self, other, "xor", "^")


def invert(self: Any) -> Variable:
    if self.dtype == "bool":
        return self._apply("logical_not", {"X": self}, {})
    _require_integers("~", self)
    return self._apply("bitwise_not", {"X": self}, {})


def lshift(self: Any, other: Any) -> Variable:
    return _shifted(self, other, "left", "<<")


def rlshift(self: Any, other: Any) -> Variable:
    return _shifted(self, other, "left", "<<", reverse=True)


def rshift(self: Any, other: Any) -> Variable:
    return _shifted(self, other, "right", ">>")


def rrshift(self: Any, other: Any) -> Variable:
    return _shifted(self, other, "right", ">>", reverse=True)


def _bits(x: Any, other: Any, name: str, sign: str) -> Variable:
    y = _bits_operand(x, other, sign)
    if x.dtype == "bool" and getattr(y, "dtype", None) == "bool":
        return _without_gradient(x, f"logical_{name}", x, y)
    _require_integers(sign, x, y)
    return _without_gradient(x, f"bitwise_{name}", *promoted(x, y, f"bitwise_{name}"))


def _shifted(x: Any, other: Any, side: str, sign: str, reverse: bool = False) -> Variable:
    y = _bits_operand(x, other, sign)
    _require_integers(sign, x, y, shift=True)
    op_type = f"bitwise_{side}_shift"
    a, b = promoted(x, y, op_type)
    return _without_gradient(x, op_type, *((b, a) if reverse else (a, b)))


def _without_gradient(like: Any, op_type: str, x: Any, y: Any) -> Variable:
    out = like._apply(op_type, {"X": x, "Y": y}, {})
    out.stop_gradient = True
    return out


def _bits_operand(x: Any, y: Any, sign: str) -> Any:
    """The other operand, where it is a number or an array, as a Variable or tensor with the dtype of x."""
    if hasattr(y, "_apply"):
        return y
    if isinstance(y, bool | np.bool_):
        return _constant(x, bool(y)) if x.dtype == "bool" else y
    if isinstance(y, numbers.Integral) and x.dtype in RANGES:
        if not RANGES[x.dtype][0] <= int(y) <= RANGES[x.dtype][1]:
            raise _out_of_range(x, y, f"operator {sign}")
        return _constant(x, y)
    if isinstance(y, np.ndarray | list) and hasattr(x, "__oprack_value__"):
        array = np.asarray(y)
        if array.dtype == x._meta.dtype or (isinstance(y, list) and array.dtype.kind == "i" and x.dtype in RANGES):
            return type(x).like(array, x)
    return y


def _require_integers(sign: str, *operands: Any, shift: bool = False) -> None:
    """Raise InvalidArgumentError unless all operands are integers."""
    for x in operands:
        if not hasattr(x, "_apply") or x.dtype not in RANGES:
            what = _named(x) if hasattr(x, "_apply") else f"{x!r} ({type(x).__name__})"
            expected = "integers" if shift else "bool tensors, such as x > 0 or x != 0, or integers for both"
            raise InvalidArgumentError(f"operator {sign}: an operand is {what}; expected {expected}")
