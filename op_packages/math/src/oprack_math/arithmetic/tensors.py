"""Operators of eager tensors: the short ways for tensors of one dtype and for numbers, and else those of all."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function, made
from oprack.functional.op_function import op_function
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.packs.changes import on_change
from oprack.tensor import LoDTensor
from oprack_tensor.ranges import DOUBLE, EXACT, RANGES, is_single

from oprack_math.arithmetic import operators
from oprack_math.arithmetic.promotion import COMPARISONS, DIVISION, dtype_beside_number

_NUMBERS = (int, float, bool, complex, np.generic, numbers.Number)
_OF_FLOATS = (DIVISION, "elementwise_pow")
"""Ops for which integers need a conversion, or a look at their values."""

scales = Cache(1024)
"""Generated functions of op scale by mode, meta and numbers."""
on_change(scales.clear)


def _scaled(x: Any, scale: float, bias: float) -> Any:
    key = (current_or_none(), x._meta, scale, bias)
    call = scales[key]
    if call is not None:
        return call(x)
    if x._meta.name in DOUBLE and x._meta.container is LoDTensor and not (is_single(scale) and is_single(bias)):
        call = _in_double(x, scale, bias)
        scales[key] = call
        return call(x)
    attrs = dict(scale=scale, bias=bias)
    result = (made.get("scale") or function("scale"))(x, **attrs)
    if scale and (bias or scale != 1.0):  # 0.0 is equal to -0.0, but not the same
        call = op_function("scale").table[(*key[:2], *attr_key(attrs))]
        if call is not None:
            scales[key] = call
    return result


def _divided(x: Any, number: float) -> Any:
    """x / number; in float64 a quotient, which a product with the reciprocal need not be."""
    key = (current_or_none(), x._meta, number, None)
    call = scales.get(key)
    if call is not None:
        return call(x)
    if (
        x._meta.name in DOUBLE
        and x._meta.container is LoDTensor
        and not (is_single(number) and is_single(1.0 / number))
    ):
        divisor = _double(x, number)
        if len(scales) >= 256:
            scales.clear()
        call = scales[key] = lambda x: function(DIVISION)(x, divisor)
        return call(x)
    result = _scaled(x, 1.0 / number, 0.0)
    call = scales.get((*key[:2], 1.0 / number, 0.0))
    if call is not None:
        scales[key] = call
    return result


def _double(x: Any, number: Any) -> Any:
    """A tensor of rank 0 with a number as precise as the dtype of x."""
    return to_tensor(np.asarray(number, x._meta.dtype), place=x.place)


def _in_double(x: Any, scale: float, bias: float) -> Callable[..., Any]:
    """scale * x + bias by ops of two tensors."""
    factor = None if scale == 1.0 else _double(x, scale)
    shift = None if not bias else _double(x, bias)

    def call(x: Any) -> Any:
        result = x if factor is None else function("elementwise_mul")(x, factor)
        return result if shift is None else function("elementwise_add")(result, shift)

    return call


# x op number, and number op x where it differs, as one affine op
_BY_NUMBER: dict[str, tuple[Callable[[Any, float], Any], Callable[[Any, float], Any] | None]] = {
    "elementwise_add": (lambda x, n: _scaled(x, 1.0, n), lambda x, n: _scaled(x, 1.0, n)),
    "elementwise_sub": (lambda x, n: _scaled(x, 1.0, -n), lambda x, n: _scaled(x, -1.0, n)),
    "elementwise_mul": (lambda x, n: _scaled(x, n, 0.0), lambda x, n: _scaled(x, n, 0.0)),
    DIVISION: (lambda x, n: _divided(x, n) if n else NotImplemented, None),
}


_WITH_CONSTANT = (*COMPARISONS, "elementwise_floordiv", "elementwise_mod")
_constants = Cache(1024)


def _constant_of(x: Any, number: float) -> Any:
    """A tensor of one element, kept for the next time."""
    key = (x._meta.dtype, x._meta.place, x.ndim > 0, repr(number))
    found = _constants[key]
    if found is None:
        array = np.full((1,) if x.ndim else (), number, x._meta.dtype)
        found = _constants[key] = to_tensor(array, place=x.place)
    return found


def _between(op_type: str, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`a op b` and `b op a`: at once for two tensors of one dtype, else as operators of Variables do it."""
    by_number, number_by = _BY_NUMBER.get(op_type, (None, None))
    general = getattr(operators, name)
    return _forward(op_type, general, by_number), _backward(
        op_type, f"__{name}__", getattr(operators, f"r{name}", None), number_by
    )


def _forward(op_type: str, general: Callable[..., Any], by_number: Callable[..., Any] | None) -> Callable[..., Any]:
    """`tensor op other`. The usual cases come first: each test is a part of what a small op costs."""
    any_dtype = op_type not in _OF_FLOATS

    def forward(self: Any, other: Any) -> Any:
        meta = getattr(other, "_meta", None)
        if (type(other) is float or type(other) is int) and by_number is not None and self._meta.differentiable:
            found = by_number(self, float(other))
            return general(self, other) if found is NotImplemented else found
        if type(other) is int and by_number is not None and any_dtype and _fits(self._meta.name, other):
            return by_number(self, float(other))
        if meta is not None and meta.dtype is self._meta.dtype and (any_dtype or meta.differentiable):
            return (made.get(op_type) or function(op_type))(self, other)
        if meta is None and type(other) in (float, int) and self._meta.differentiable and op_type in _WITH_CONSTANT:
            return (made.get(op_type) or function(op_type))(self, _constant_of(self, float(other)))
        if meta is None and (not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating)):
            found = _array_operand(self, other)
            if found is NotImplemented:
                return general(self, other) if hasattr(other, "as_number_of") else found
            other = found
        if isinstance(other, np.float64) and self._meta.name in DOUBLE:
            return forward(self, float(other))
        if op_type == "elementwise_pow" and hasattr(other, "_meta"):
            _require_whole_power(self, other)
        return general(self, other)

    return forward


def _backward(
    op_type: str, name: str, general: Callable[..., Any] | None, number_by: Callable[..., Any] | None
) -> Callable[..., Any]:
    """`other op tensor`, which Python asks for when `other` does not know tensors."""

    def backward(self: Any, other: Any) -> Any:
        if type(other) in (float, int) and number_by is not None and self._meta.differentiable:
            return number_by(self, float(other))
        if not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating):
            found = _array_operand(self, other)
            if found is NotImplemented:
                return general(self, other) if general is not None and hasattr(other, "as_number_of") else found
            return getattr(found, name)(self)
        if isinstance(other, np.floating) and self._meta.name in DOUBLE:
            other = float(other)
            if number_by is not None:
                return number_by(self, other)
        if op_type == "elementwise_pow":
            _require_whole_power(other, self)
        return general(self, other) if general is not None else NotImplemented

    return backward


def _fits(dtype: Any, number: int) -> bool:
    """Whether an integer dtype holds a number, and float32 does as well."""
    limits = RANGES.get(dtype)
    return limits is not None and limits[0] <= number <= limits[1] and -EXACT <= number <= EXACT


def _require_whole_power(base: Any, exponent: Any) -> None:
    """Raise InvalidArgumentError for integers to the power of negative ones; on a GPU the look would wait for it."""
    whole = base._meta.dtype.kind in "iub" if hasattr(base, "_meta") else isinstance(base, numbers.Integral)
    if whole and exponent._meta.dtype.kind == "i" and exponent.place.kind == "cpu" and (exponent._value < 0).any():
        raise InvalidArgumentError(
            f"op elementwise_pow: the exponent {exponent.describe()} holds negative numbers and the base is an "
            "integer, whose power would have fractions; cast the exponent first: n.astype('float32')"
        )


def _array_operand(self: Any, other: Any) -> Any:
    """An array or a list as a tensor; NotImplemented for what is none."""
    if hasattr(other, "_meta"):
        return other
    if isinstance(other, complex | np.complexfloating):
        dtype = dtype_beside_number(self.dtype, other, "")
        return to_tensor(np.full([1] * min(self.ndim, 1), other), dtype, place=self.place)
    if isinstance(other, np.ndarray | list) or hasattr(other, "__cuda_array_interface__"):
        return to_tensor(other, place=self.place)
    return NotImplemented


add, radd = _between("elementwise_add", "add")
sub, rsub = _between("elementwise_sub", "sub")
mul, rmul = _between("elementwise_mul", "mul")
truediv, rtruediv = _between(DIVISION, "truediv")
floordiv, rfloordiv = _between("elementwise_floordiv", "floordiv")
mod, rmod = _between("elementwise_mod", "mod")
pow, rpow = _between("elementwise_pow", "pow")
matmul, _ = _between("matmul_v2", "matmul")
lt, _ = _between("less_than", "lt")
le, _ = _between("less_equal", "le")
gt, _ = _between("greater_than", "gt")
ge, _ = _between("greater_equal", "ge")
eq, _ = _between("equal", "eq")
ne, _ = _between("not_equal", "ne")


def rmatmul(self: Any, other: Any) -> Any:
    found = _array_operand(self, other)
    return found if found is NotImplemented else found @ self
