"""Operators of eager tensors: the short ways for tensors of one dtype and for numbers, and else those of Variables."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.functional.creation import to_tensor
from oprack.functional.generated import by_role, function_for
from oprack.functional.op_function import op_function
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.layers.operators import Operators
from oprack.layers.promotion import COMPARISONS, DOUBLE, EXACT, RANGES, dtype_beside_number, is_single
from oprack.packs.changes import on_change
from oprack.packs.vocabulary import op_for
from oprack.tensor import LoDTensor

_NUMBERS = (int, float, bool, complex, np.generic, numbers.Number)


scales = Cache(1024)
"""Generated functions of the role affine by mode, meta and numbers."""
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
    result = (by_role.get("affine") or function_for("affine"))(x, **attrs)
    if scale and (bias or scale != 1.0):  # 0.0 is equal to -0.0, but not the same
        call = op_function(op_for("affine")).table[(*key[:2], *attr_key(attrs))]
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
        call = scales[key] = lambda x: function_for("divide")(x, divisor)
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
        result = x if factor is None else function_for("multiply")(x, factor)
        return result if shift is None else function_for("add")(result, shift)

    return call


# x op number, and number op x where it differs, as one affine op
_BY_NUMBER: dict[str, tuple[Callable[[Any, float], Any], Callable[[Any, float], Any] | None]] = {
    "add": (lambda x, n: _scaled(x, 1.0, n), lambda x, n: _scaled(x, 1.0, n)),
    "subtract": (lambda x, n: _scaled(x, 1.0, -n), lambda x, n: _scaled(x, -1.0, n)),
    "multiply": (lambda x, n: _scaled(x, n, 0.0), lambda x, n: _scaled(x, n, 0.0)),
    "divide": (lambda x, n: _divided(x, n) if n else NotImplemented, None),
}


_WITH_CONSTANT = (*COMPARISONS, "floor_divide", "modulo")
_constants = Cache(1024)


def _constant_of(x: Any, number: float) -> Any:
    """A tensor of one element, kept for the next time."""
    key = (x._meta.dtype, x._meta.place, x.ndim > 0, repr(number))
    found = _constants[key]
    if found is None:
        array = np.full((1,) if x.ndim else (), number, x._meta.dtype)
        found = _constants[key] = to_tensor(array, place=x.place)
    return found


def operator(role: str, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`a op b` and `b op a`: at once for two tensors of one dtype, else as operators on Variables do it.

    role: of oprack.op.vocabulary. name: of Python's method, such as "__add__".
    """
    by_number, number_by = _BY_NUMBER.get(role, (None, None))
    return _forward(role, getattr(Operators, name), by_number), _backward(role, name, number_by)


def _forward(role: str, general: Callable[..., Any], by_number: Callable[..., Any] | None) -> Callable[..., Any]:
    """`tensor op other`. The usual cases come first: each test is a part of what a small op costs."""
    any_dtype = role not in ("divide", "power")  # integers need a conversion, or a look at their values

    def forward(self: Any, other: Any) -> Any:
        meta = getattr(other, "_meta", None)
        if (type(other) is float or type(other) is int) and by_number is not None and self._meta.differentiable:
            found = by_number(self, float(other))
            return general(self, other) if found is NotImplemented else found
        if type(other) is int and by_number is not None and any_dtype and _fits(self._meta.name, other):
            return by_number(self, float(other))
        if meta is not None and meta.dtype is self._meta.dtype and (any_dtype or meta.differentiable):
            return (by_role.get(role) or function_for(role))(self, other)
        if meta is None and type(other) in (float, int) and self._meta.differentiable and role in _WITH_CONSTANT:
            return (by_role.get(role) or function_for(role))(self, _constant_of(self, float(other)))
        if meta is None and (not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating)):
            other = array_operand(self, other)
            if other is NotImplemented:
                return other
        if isinstance(other, np.float64) and self._meta.name in DOUBLE:
            return forward(self, float(other))
        if role == "power" and hasattr(other, "_meta"):
            _require_whole_power(self, other)
        return general(self, other)

    return forward


def _backward(role: str, name: str, number_by: Callable[..., Any] | None) -> Callable[..., Any]:
    """`other op tensor`, which Python asks for when `other` does not know tensors."""
    reversed_ = getattr(Operators, f"__r{name[2:]}", None)

    def backward(self: Any, other: Any) -> Any:
        if type(other) in (float, int) and number_by is not None and self._meta.differentiable:
            return number_by(self, float(other))
        if not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating):
            other = array_operand(self, other)
            if other is NotImplemented:
                return other
            return getattr(other, name)(self)
        if isinstance(other, np.floating) and self._meta.name in DOUBLE:
            other = float(other)
            if number_by is not None:
                return number_by(self, other)
        if role == "power":
            _require_whole_power(other, self)
        return reversed_(self, other) if reversed_ is not None else NotImplemented

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
            f"op {op_for('power')}: the exponent {exponent.describe()} holds negative numbers and the base is an "
            "integer, whose power would have fractions; cast the exponent first: n.astype('float32')"
        )


def array_operand(self: Any, other: Any) -> Any:
    if hasattr(other, "_meta"):
        return other
    if isinstance(other, complex | np.complexfloating):
        dtype = dtype_beside_number(self.dtype, other, "")
        return to_tensor(np.full([1] * min(self.ndim, 1), other), dtype, place=self.place)
    if isinstance(other, np.ndarray | list) or hasattr(other, "__cuda_array_interface__"):
        return to_tensor(other, place=self.place)
    return NotImplemented
