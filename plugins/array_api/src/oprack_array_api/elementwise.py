"""Element-wise functions of the standard: a table of names and ops, and what is made of several ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack import Tensor
from oprack import functional as F

from oprack_array_api._operands import SCALARS, cast, constant, require_tensor, together
from oprack_array_api.dtypes import category

# Name of the standard -> op of one input
_UNARY = {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "conj": "conj",
    "cos": "cos",
    "cosh": "cosh",
    "exp": "exp",
    "expm1": "expm1",
    "imag": "imag",
    "isfinite": "isfinite_v2",
    "isinf": "isinf_v2",
    "isnan": "isnan_v2",
    "log": "log",
    "log10": "log10",
    "log1p": "log1p",
    "log2": "log2",
    "logical_not": "logical_not",
    "reciprocal": "reciprocal",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "square": "square",
    "tan": "tan",
    "tanh": "tanh",
}
# The same for those that leave integers as they are
_ROUNDING = {"ceil": "ceil", "floor": "floor", "trunc": "trunc"}
# Name of the standard -> op of two inputs that broadcast
_BINARY = {
    "add": "elementwise_add",
    "atan2": "atan2",
    "bitwise_and": "bitwise_and",
    "bitwise_left_shift": "bitwise_left_shift",
    "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift",
    "bitwise_xor": "bitwise_xor",
    "copysign": "copysign",
    "divide": "elementwise_div",
    "greater": "greater_than",
    "greater_equal": "greater_equal",
    "less": "less_than",
    "less_equal": "less_equal",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "multiply": "elementwise_mul",
    "nextafter": "nextafter",
    "pow": "elementwise_pow",
    "remainder": "elementwise_mod",
    "subtract": "elementwise_sub",
}


def _unary(name: str, op: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return getattr(F, op)(require_tensor(x, name))

    return _described(function, name, op)


def _rounding(name: str, op: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        found = x.clone() if category(require_tensor(x, name).dtype) == "integral" else getattr(F, op)(x)
        return found

    return _described(function, name, op)


def _binary(name: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return getattr(F, op)(*together(x1, x2, name))

    return _described(function, name, op, _TWO)


_ONE = """Args:
    x: A tensor.

Returns:
    Tensor of the shape of x.
"""
_TWO = """Args:
    x1: A tensor, or a Python scalar if x2 is a tensor.
    x2: A tensor that broadcasts with x1, or a Python scalar.

Returns:
    Tensor of the broadcast shape.

Raises:
    TypeError: The dtypes have no common one in the standard.
"""


def _described(function: Any, name: str, op: str, arguments: str = _ONE) -> Any:
    function.__name__ = function.__qualname__ = name
    about = f"`{name}` of the array API standard, by op {op}: see help(oprack.functional.{op})."
    function.__doc__ = f"{about}\n\n{arguments}"
    return function


globals().update({name: _unary(name, op) for name, op in _UNARY.items()})
globals().update({name: _rounding(name, op) for name, op in _ROUNDING.items()})
globals().update({name: _binary(name, op) for name, op in _BINARY.items()})


def real(x: Any, /) -> Tensor:
    """The real parts; a real tensor as it is."""
    found = F.real(x) if category(require_tensor(x, "real").dtype) == "complex floating" else x
    return found


def positive(x: Any, /) -> Tensor:
    """A copy."""
    return require_tensor(x, "positive").clone()


def negative(x: Any, /) -> Tensor:
    """-x, by op scale."""
    return F.scale(require_tensor(x, "negative"), scale=-1.0)


def equal(x1: Any, x2: Any, /) -> Tensor:
    """Tells for each element whether x1 and x2 are equal.

    Op equal, which the operator == calls, takes floats that differ by 1e-8 for equal; this function does not.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of bool.
    """
    x, y = together(x1, x2, "equal")
    if category(x.dtype) == "real floating":
        return F.logical_and(F.less_equal(x, y), F.greater_equal(x, y))
    return F.equal(x, y)


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """Tells whether elements differ.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of bool.
    """
    return F.logical_not(equal(x1, x2))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Divides and rounds down; of infinities, as the standard has it, floor(x1 / x2).

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    x, y = together(x1, x2, "floor_divide")
    found = F.elementwise_floordiv(x, y)
    if category(x.dtype) != "real floating":
        return found
    odd = F.logical_or(F.isinf_v2(x), F.isinf_v2(y))
    return where(odd, F.floor(F.elementwise_div(x, y)), found)


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Chooses x1 where a condition holds, and x2 elsewhere.

    Args:
        condition: A tensor of bool, which broadcasts with x1 and x2.
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    from oprack_array_api.searching import where as found

    return found(condition, x1, x2)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """Takes the greater of two elements; NaN where one is NaN.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    return _extreme("elementwise_max", *together(x1, x2, "maximum"))


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """Takes the smaller of two elements; NaN where one is NaN.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    return _extreme("elementwise_min", *together(x1, x2, "minimum"))


def _extreme(op: str, x: Any, y: Any) -> Tensor:
    found = getattr(F, op)(x, y)  # which is y where x is NaN
    return where(F.isnan_v2(x), x, found) if category(x.dtype) == "real floating" else found


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """Computes the square root of x1^2 + x2^2, as the modulus of x1 + i x2.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    x, y = together(x1, x2, "hypot")
    return F.abs(F.complex(x, y))


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """Computes ln(e^x1 + e^x2) without overflow, by op logsumexp.

    Args:
        x1: A tensor, or a Python scalar if x2 is a tensor.
        x2: A tensor that broadcasts with x1, or a Python scalar.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.
    """
    from oprack_array_api.manipulation import broadcast_arrays

    x, y = broadcast_arrays(*together(x1, x2, "logaddexp"))
    return F.logsumexp(F.stack([x, y], axis=0), axis=[0])


def round(x: Any, /) -> Tensor:
    """The nearest whole number, of two the even one; of complex numbers, part by part."""
    kind = category(require_tensor(x, "round").dtype)
    if kind == "integral":
        return x.clone()
    if kind == "complex floating":
        return F.complex(round(F.real(x)), round(F.imag(x)))
    # op round takes halves away from zero, and twice the rounded half is even
    half = F.equal(F.abs(F.elementwise_sub(x, F.trunc(x))), constant(0.5, x.dtype, x))
    two = constant(2.0, x.dtype, x)
    return where(half, F.elementwise_mul(F.round(F.elementwise_div(x, two)), two), F.round(x))


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1; of a complex number, it over its modulus."""
    if category(require_tensor(x, "sign").dtype) != "complex floating":
        return F.sign(x)
    size = F.abs(x)
    zero = F.logical_not(size.astype("bool"))
    return where(zero, constant(0, x.dtype, x), F.elementwise_div(x, cast(where(zero, 1.0, size), x.dtype)))


def signbit(x: Any, /) -> Tensor:
    """Whether the sign is set, also that of -0 and NaN."""
    one = constant(1.0, require_tensor(x, "signbit").dtype, x)
    return F.less_than(F.copysign(one, x), constant(0.0, x.dtype, x))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Cuts elements to an interval.

    Args:
        x: A tensor.
        min: The lower bound, a number or a tensor that broadcasts; None: no bound.
        max: The upper bound, a number or a tensor that broadcasts; None: no bound.

    Returns:
        Tensor of the dtype of x.
    """
    found = require_tensor(x, "clip")
    for bound, op in ((min, "elementwise_max"), (max, "elementwise_min")):
        if bound is None:
            continue
        limit = constant(bound, x.dtype, x) if isinstance(bound, SCALARS) else cast(bound, x.dtype)
        found = getattr(F, op)(limit, found)  # the second one where one of them is NaN
    return found.clone() if found is x else found
