"""Element by element: special functions, parts of numbers, what compares and what rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import dtype_name, floating, numbers, promoted, tensor
from oprack_paddle.members.in_place import take_over

Tensor = Any


def add_n(inputs: Any, name: Any = None) -> Tensor:
    """The sum of tensors of one shape."""
    return F.sum([inputs] if not isinstance(inputs, list | tuple) else list(inputs))


def deg2rad(x: Tensor, name: Any = None) -> Tensor:
    """Degrees as radians."""
    return (x if x.dtype == "float16" else floating(x)) * (math.pi / 180.0)


def rad2deg(x: Tensor, name: Any = None) -> Tensor:
    """Radians as degrees."""
    return (x if x.dtype == "float16" else floating(x)) * (180.0 / math.pi)


def fmax(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The larger of two elements; of a number and NaN, the number."""
    return F.elementwise_fmax(x, y)


def fmin(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The smaller of two elements; of a number and NaN, the number."""
    return F.elementwise_fmin(x, y)


def heaviside(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """0 below zero, 1 above, y at zero."""
    return F.elementwise_heaviside(x, y)


def floor_mod(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The remainder of floor division."""
    return oprack.mod(x, y)


def frac(x: Tensor, name: Any = None) -> Tensor:
    """The part of each number behind the point."""
    return x - F.trunc(x)


def gcd(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The greatest common divisor of two integers."""
    return numbers(np.gcd, x, y)


def lcm(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The least common multiple of two integers."""
    return numbers(np.lcm, x, y)


def frexp(x: Tensor, name: Any = None) -> tuple[Tensor, Tensor]:
    """Mantissas from 0.5 to 1 and exponents of two, both in the dtype of x."""
    mantissa, exponent = np.frexp(np.asarray(x))
    return oprack.to_tensor(mantissa), oprack.to_tensor(exponent.astype(mantissa.dtype))


def hypot(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The length of the hypotenuse of a triangle with these legs."""
    return oprack.sqrt(x * x + y * y)


def ldexp(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """x times two to the power of y."""
    return floating(x) * (2.0 ** floating(y))


def logaddexp(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The logarithm of the sum of the exponentials."""
    x, y = floating(x), floating(y)
    return F.log1p(F.exp(-F.abs(x - y))) + oprack.maximum(x, y)


def multigammaln(x: Tensor, p: int, name: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    terms = [F.lgamma(x - 0.5 * i) for i in range(p)]
    return add_n(terms) + 0.25 * p * (p - 1) * math.log(math.pi)


def nan_to_num(x: Tensor, nan: float = 0.0, posinf: Any = None, neginf: Any = None, name: Any = None) -> Tensor:
    """NaN and infinities as numbers; by default as zero and the largest and smallest that the dtype has."""
    limits = np.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    for mask, value in ((oprack.isnan(x), nan), (x == math.inf, high), (x == -math.inf, low)):
        x = oprack.where(mask, oprack.full_like(x, value), x)
    return x


def sgn(x: Tensor, name: Any = None) -> Tensor:
    """The sign; of a complex number, its direction, and 0 for 0."""
    if not str(x.dtype).startswith("complex"):
        return F.sign(x)
    length = F.abs(x)
    safe = oprack.where(length == 0, oprack.ones_like(length), length)
    return x / safe.astype(x.dtype)


def polar(abs: Tensor, angle: Tensor, name: Any = None) -> Tensor:
    """Complex numbers of these lengths and angles."""
    return F.complex(abs * F.cos(angle), abs * F.sin(angle))


def is_complex(x: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    return str(x.dtype).startswith("complex")


def is_floating_point(x: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    return x.dtype in ("float16", "bfloat16", "float32", "float64")


def is_integer(x: Tensor) -> bool:
    """Whether the elements are integers."""
    return x.dtype in ("uint8", "int8", "int16", "int32", "int64")


def isclose(
    x: Tensor, y: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: Any = None
) -> Tensor:
    """Whether elements differ by at most atol + rtol * |y|."""
    return F.isclose(x, tensor(y, x), rtol=repr(rtol), atol=repr(atol), equal_nan=equal_nan)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """The elements in another dtype."""
    return oprack.astype(x, dtype_name(dtype))


def rank(input: Tensor) -> Tensor:
    """The number of dims, as a tensor."""
    return oprack.to_tensor(np.asarray(input.ndim, "int32"))


def scale(
    x: Tensor, scale: Any = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: Any = None, name: Any = None
) -> Tensor:
    """scale * x + bias; or scale * (x + bias)."""
    if hasattr(scale, "dtype"):
        found = F.scale(x, scale_tensor=scale, bias=float(bias), bias_after_scale=bias_after_scale)
    else:
        found = F.scale(x, scale=float(scale), bias=float(bias), bias_after_scale=bias_after_scale)
    return found if act is None else getattr(F, act)(found)


def clip(x: Tensor, min: Any = None, max: Any = None, name: Any = None) -> Tensor:
    """Elements cut to a range; without bounds as they are."""
    if min is None and max is None:
        return oprack.clone(x)
    return oprack.clip(x, min, max)


def increment(x: Tensor, value: float = 1.0, name: Any = None) -> Tensor:
    """Adds a number to the only element of a tensor, in its memory."""
    x.set_value(np.asarray(x) + np.asarray(value, x.dtype)) if isinstance(x, oprack.Tensor) else F.increment(
        x, step=float(value), in_place=True
    )
    return x


def stanh(x: Tensor, scale_a: float = 0.67, scale_b: float = 1.7159, name: Any = None) -> Tensor:
    """scale_b * tanh(scale_a * x)."""
    return F.stanh(x, scale_a=scale_a, scale_b=scale_b)


def lerp(x: Tensor, y: Tensor, weight: Any, name: Any = None) -> Tensor:
    """Interpolates linearly between two tensors."""
    return oprack.lerp(x, y, weight)


def logcumsumexp(x: Tensor, axis: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    """The logarithm of running sums of exponentials; over all elements without an axis."""
    x = x if dtype is None else cast(x, dtype)
    return F.logcumsumexp(x, axis=-1 if axis is None else axis, flatten=axis is None)


def multiplex(inputs: Any, index: Tensor, name: Any = None) -> Tensor:
    """Row by row the row of the tensor that the index names."""
    return F.multiplex(ids=index, x=list(inputs))


def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """Slices along an axis whose p-norm is larger than max_norm, scaled down to it."""
    return F.renorm(x, p=float(p), axis=axis % x.ndim, max_norm=float(max_norm))


def logical_and(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """Whether both elements are not zero."""
    return _written_to(out, F.logical_and(*promoted(x, y)))


def logical_or(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """Whether one of the elements is not zero."""
    return _written_to(out, F.logical_or(*promoted(x, y)))


def logical_xor(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """Whether exactly one of the elements is not zero."""
    return _written_to(out, F.logical_xor(*promoted(x, y)))


def logical_not(x: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """Whether elements are zero."""
    return _written_to(out, F.logical_not(x))


def _written_to(out: Any, found: Tensor) -> Tensor:
    if out is not None:
        take_over("out", out, found)
    return found


def bitwise_and(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """The bits that both have."""
    return _written_to(out, F.bitwise_and(x, y))


def bitwise_or(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """The bits that one of both has."""
    return _written_to(out, F.bitwise_or(x, y))


def bitwise_xor(x: Tensor, y: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """The bits in which both differ."""
    return _written_to(out, F.bitwise_xor(x, y))


def bitwise_not(x: Tensor, out: Any = None, name: Any = None) -> Tensor:
    """The bits that an integer has not."""
    return _written_to(out, F.bitwise_not(x))


def divide(x: Tensor, y: Any, name: Any = None) -> Tensor:
    """x / y; of two integers an integer, as Paddle has it."""
    if is_integer(x) and hasattr(y, "dtype") and is_integer(y) and x.dtype == y.dtype:
        return F.elementwise_div(x, y)
    return oprack.divide(x, y)


def equal(x: Tensor, y: Any, name: Any = None) -> Tensor:
    """Whether elements are equal; y may be a number."""
    return F.equal(*promoted(x, tensor(y, x)))
