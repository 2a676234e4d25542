"""Python's operators on Variables: each appends ops of the packs, by the names that Fluid has for them."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from oprack.errors import InvalidArgumentError
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.layers.variable import Variable

# Of two dtypes, an operator converts to the one that comes later.
_PROMOTION = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# integers up to here are exact in the float32 attributes of `scale`
_EXACT = 1 << 24


class Operators:
    """Base of Variable and of eager tensors. Results carry the LoD of the left operand."""

    __slots__ = ()

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        """One call of an op, with this object's program where it has one; the first of `slots` is the result."""
        raise NotImplementedError(f"{type(self).__name__} must define _apply")

    def __add__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_add")

    def __radd__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_add", reverse=True)

    def __sub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub")

    def __rsub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub", reverse=True)

    def __mul__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mul")

    def __rmul__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mul", reverse=True)

    def __truediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div")

    def __rtruediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div", reverse=True)

    def __pow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow")

    def __rpow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow", reverse=True)

    def __floordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_floordiv")

    def __rfloordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_floordiv", reverse=True)

    def __mod__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mod")

    def __rmod__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mod", reverse=True)

    def __matmul__(self, other: Any) -> Variable:
        return _binary(self, other, "matmul_v2")

    def __neg__(self) -> Variable:
        return _append("scale", self, {"X": self}, {"scale": -1.0})

    def __lt__(self, other: Any) -> Variable:
        return _binary(self, other, "less_than")

    def __le__(self, other: Any) -> Variable:
        return _binary(self, other, "less_equal")

    def __gt__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_than")

    def __ge__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_equal")

    def __eq__(self, other: object) -> Variable:  # type: ignore[override]
        return _binary(self, other, "equal")

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return _binary(self, other, "not_equal")

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Variable:
        """x[2], x[1:3], x[..., 0], x[None], x[::-1]; an index may be an integer Variable of one element."""
        from oprack.layers.indexing import indexed

        return indexed(_variable(self), index)

    def __len__(self) -> int:
        x = _variable(self)
        if not x.shape or x.shape[0] < 0:
            raise InvalidArgumentError(f"len({x.name}): dim 0 of shape {list(x.shape)} is not known before a run")
        return x.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise InvalidArgumentError(
            f"variable {_variable(self).name!r} has no value while the program is built, so `if`, `and`, `not` and "
            "`in` can't use it; use layers.cond or layers.while_loop, layers.logical_and, `is None`, or compare names"
        )

    def astype(self, dtype: object) -> Variable:
        """The values as another dtype: op cast."""
        x = _variable(self)
        name = dtype_name(dtype)
        attrs = {"in_dtype": int(dtype_enum(x.dtype)), "out_dtype": int(dtype_enum(name))}
        return _append("cast", x, {"X": x}, attrs)

    def detach(self) -> Variable:
        """The same values, through which no gradient flows: op assign."""
        found = _append("assign", self, {"X": self}, {})
        found.stop_gradient = True
        return found


def _variable(x: Any) -> Variable:
    return x  # type: ignore[no-any-return]


def _append(op_type: str, like: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> Variable:
    return like._apply(op_type, inputs, attrs)  # type: ignore[no-any-return]


_COMPARISONS = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")


def _binary(left: Any, right: Any, op_type: str, reverse: bool = False) -> Variable:
    x: Any = left
    if isinstance(right, numbers.Number) or type(right).__name__ == "bool_":
        x, done = _with_number(left, right, op_type, reverse)
        if done:
            return x  # type: ignore[no-any-return]
        right = _constant(x, right)
    elif not isinstance(right, Operators):
        raise InvalidArgumentError(
            f"op {op_type}: the other operand of variable {left.name!r} is {type(right).__name__}; expected a Variable "
            "or a number; make a Variable of an array with oprack.layers.assign(array)"
        )
    x, y = _promoted(x, right, op_type)
    if reverse:
        x, y = y, x
    out = _append(op_type, left, {"X": x, "Y": y}, {})
    if op_type in _COMPARISONS:
        out.stop_gradient = True
    return out


def _with_number(x: Any, number: Any, op_type: str, reverse: bool) -> tuple[Any, bool]:
    """(result, True) when one `scale` or `pow` does it, else (the variable in a dtype that suits the number, False)."""
    whole = isinstance(number, numbers.Integral)
    if x.dtype not in _FLOATING and (not whole or op_type == "elementwise_div"):
        x = x.astype("float32")
    if isinstance(number, complex) or (x.dtype not in _FLOATING and abs(int(number)) > _EXACT) or x.dtype == "bool":
        return x, False
    scale = bias = None
    if op_type == "elementwise_add":
        scale, bias = 1.0, float(number)
    elif op_type == "elementwise_sub":
        scale, bias = (-1.0, float(number)) if reverse else (1.0, -float(number))
    elif op_type == "elementwise_mul":
        scale, bias = float(number), 0.0
    elif op_type == "elementwise_div" and not reverse and number != 0:
        scale, bias = 1.0 / float(number), 0.0
    elif op_type == "elementwise_pow" and not reverse and x.dtype in _FLOATING:
        return _append("pow", x, {"X": x}, {"factor": float(number)}), True
    if scale is None:
        return x, False
    return _append("scale", x, {"X": x}, {"scale": scale, "bias": bias}), True


def _constant(x: Any, number: Any) -> Variable:
    value = number if isinstance(number, numbers.Integral) else float(number)
    attrs = {
        "shape": [1] if x.shape else [],
        "dtype": int(dtype_enum(x.dtype)),
        "value": float(value),
        "str_value": str(int(value)) if isinstance(value, numbers.Integral) else repr(value),
    }
    out = _append("fill_constant", x, {}, attrs)
    out.stop_gradient = True
    return out


def _promoted(x: Any, y: Any, op_type: str) -> tuple[Any, Any]:
    """Both in one dtype: of two, the one that holds more; integers are divided as float32."""
    if op_type == "elementwise_div" and {x.dtype, y.dtype}.isdisjoint(_FLOATING):
        return x.astype("float32"), y.astype("float32")
    if x.dtype == y.dtype or x.dtype not in _PROMOTION or y.dtype not in _PROMOTION:
        return x, y
    if _PROMOTION.index(x.dtype) < _PROMOTION.index(y.dtype):
        return x.astype(y.dtype), y
    return x, y.astype(x.dtype)
