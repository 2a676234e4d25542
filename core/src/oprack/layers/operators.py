"""Python's operators on Variables: each appends the op that plays a role of oprack.op.vocabulary."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.layers.promotion import (
    COMPARISONS,
    DOUBLE,
    EXACT,
    RANGES,
    append,
    constant,
    dtype_beside_number,
    is_floating,
    is_single,
    named,
    out_of_range,
    promoted,
    variable,
)
from oprack.packs.vocabulary import op_for
from oprack.types import VarType, dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.layers.variable import Variable


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


_NUMBERS = (int, float, complex, np.generic, numbers.Number)


class Operators:
    """Base of Variable, installed on eager tensors by oprack.functional. Results carry the LoD of the left operand.

    dtypes: of two, the one that holds both: see oprack.layers.promotion.
    """

    __slots__ = ()

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        """One call of an op, with this object's program where it has one; the first of `slots` is the result."""
        raise NotImplementedError(f"{type(self).__name__} must define _apply")

    def _operand(self, other: Any, role: str) -> Any:
        """Another operand that is neither a Variable nor a number as one that has `_apply`.

        Raises:
            InvalidArgumentError: It is none.
        """
        raise InvalidArgumentError(
            f"op {op_for(role)}: the other operand of {named(self)} is {type(other).__name__}; expected a Variable "
            "or a number; make a Variable of an array with oprack.layers.assign(array)"
        )

    def __add__(self, other: Any) -> Variable:
        return _binary(self, other, "add")

    def __radd__(self, other: Any) -> Variable:
        return _binary(self, other, "add", reverse=True)

    def __sub__(self, other: Any) -> Variable:
        return _binary(self, other, "subtract")

    def __rsub__(self, other: Any) -> Variable:
        return _binary(self, other, "subtract", reverse=True)

    def __mul__(self, other: Any) -> Variable:
        return _binary(self, other, "multiply")

    def __rmul__(self, other: Any) -> Variable:
        return _binary(self, other, "multiply", reverse=True)

    def __truediv__(self, other: Any) -> Variable:
        return _binary(self, other, "divide")

    def __rtruediv__(self, other: Any) -> Variable:
        return _binary(self, other, "divide", reverse=True)

    def __pow__(self, other: Any) -> Variable:
        return _binary(self, other, "power")

    def __rpow__(self, other: Any) -> Variable:
        return _binary(self, other, "power", reverse=True)

    def __floordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "floor_divide")

    def __rfloordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "floor_divide", reverse=True)

    def __mod__(self, other: Any) -> Variable:
        return _binary(self, other, "modulo")

    def __rmod__(self, other: Any) -> Variable:
        return _binary(self, other, "modulo", reverse=True)

    def __matmul__(self, other: Any) -> Variable:
        return _binary(self, other, "matrix_product")

    def __abs__(self) -> Variable:
        return append("absolute", self, {"X": self}, {})

    def __pos__(self) -> Variable:
        return self  # type: ignore[return-value]

    def __neg__(self) -> Variable:
        if variable(self).dtype == "bool":
            raise InvalidArgumentError(
                f"{named(self)} is bool, which has no negative; use x.logical_not() or x == False"
            )
        return append("affine", self, {"X": self}, dict(scale=-1.0))

    def __lt__(self, other: Any) -> Variable:
        return _binary(self, other, "less")

    def __le__(self, other: Any) -> Variable:
        return _binary(self, other, "less_or_equal")

    def __gt__(self, other: Any) -> Variable:
        return _binary(self, other, "greater")

    def __ge__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_or_equal")

    def __eq__(self, other: object) -> Variable:  # type: ignore[override]
        return _binary(self, other, "equals")

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return _binary(self, other, "differs")

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Variable:
        """x[2], x[1:3], x[..., 0], x[None], x[::-1]; an index may be an integer Variable of one element."""
        from oprack.layers.indexing import indexed

        return indexed(variable(self), index)

    def __len__(self) -> int:
        x = variable(self)
        if not x.shape or x.shape[0] < 0:
            raise InvalidArgumentError(f"len({x.name}): dim 0 of shape {list(x.shape)} is not known before a run")
        return x.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise InvalidArgumentError(
            f"variable {variable(self).name!r} has no value while the program is built, so `if`, `and`, `not` and "
            "`in` can't use it; use layers.cond or layers.while_loop, layers.logical_and, `is None`, or compare names"
        )

    def astype(self, dtype: object) -> Variable:
        """The values as another dtype."""
        x = variable(self)
        name = dtype_name(dtype)
        attrs = {"in_dtype": int(dtype_enum(x.dtype)), "out_dtype": int(dtype_enum(name))}
        return append("convert", x, {"X": x}, attrs)

    def detach(self) -> Variable:
        """The same values, through which no gradient flows."""
        found = append("copy", self, {"X": self}, {})
        found.stop_gradient = True
        return found

    # Bits: &, |, ^ and ~ of integers or of bools, << and >> of integers -----------------------------------------------
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


def _binary(left: Any, right: Any, role: str, reverse: bool = False) -> Variable:
    x: Any = left
    if isinstance(right, _NUMBERS):
        x, right, done = _with_number(left, right, role, reverse)
        if done:
            return x  # type: ignore[no-any-return]
        right = constant(x, right)
    elif not hasattr(right, "_apply"):
        right = left._operand(right, role)
    x, y = promoted(x, right, role)
    if reverse:
        x, y = y, x
    out = append(role, left, {"X": x, "Y": y}, {})
    if role in COMPARISONS:
        out.stop_gradient = True
    return out


def _with_number(x: Any, number: Any, role: str, reverse: bool) -> tuple[Any, Any, bool]:
    """(result, None, True) when the role affine or number_power does it, else (the variable, the number, False) in a
    dtype that suits both.
    """
    wanted = dtype_beside_number(x.dtype, number, role)
    if wanted != x.dtype:
        x = x.astype(wanted)
    whole = isinstance(number, numbers.Integral) and x.dtype in RANGES
    if whole and not RANGES[x.dtype][0] <= int(number) <= RANGES[x.dtype][1]:
        if role in COMPARISONS:  # the answer is known, and an infinity gives it
            return x.astype("float64"), math.copysign(math.inf, int(number)), False
        raise out_of_range(x, number, f"op {op_for(role)}")
    power = role == "power" and not reverse
    if whole and power and int(number) < 0:
        raise InvalidArgumentError(
            f"op {op_for(role)}: {named(x)} to the power of {number} has fractions, which {x.dtype} can't hold; cast "
            f"it first: x.astype('float32') ** {number}"
        )
    if x.dtype == "bool" or not _is_exact(number, whole, x):
        return x, number, False
    if power and is_floating(x.dtype):
        return append("number_power", x, {"X": x}, {"factor": float(number)}), None, True
    line = _line(role, number, reverse)
    if line is None or (role == "divide" and not _is_exact(line[0], False, x)):
        return x, number, False
    return append("affine", x, {"X": x}, dict(zip(("scale", "bias"), line, strict=True))), None, True


def _is_exact(number: Any, whole: bool, x: Any) -> bool:
    """Whether an attribute holds the number: it is float32, which has no complex numbers and not all large integers."""
    if isinstance(number, complex) or (whole and abs(int(number)) > EXACT):
        return False
    if x.dtype not in DOUBLE or is_single(float(number)):
        return True
    # only the op with the attribute knows sparse rows
    return x.is_sparse if hasattr(x, "__oprack_value__") else x.type == VarType.SELECTED_ROWS  # type: ignore[no-any-return]


def _line(role: str, number: Any, reverse: bool) -> tuple[float, float] | None:
    """(scale, bias), so that the operator's result is scale * x + bias; None where there are none."""
    if role == "add":
        return 1.0, float(number)
    if role == "subtract":
        return (-1.0, float(number)) if reverse else (1.0, -float(number))
    if role == "multiply":
        return float(number), 0.0
    if role == "divide" and not reverse and number != 0:
        return 1.0 / float(number), 0.0
    return None
