"""Two tensors, or a tensor and a number, element by element, under the names of NumPy and Paddle 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor
from oprack.layers import Variable
from oprack_tensor.ranges import RANGES, rounded_by_attribute


def add(x: Tensor, y: Any) -> Tensor:
    """Adds element by element, $$x + y$$.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape; its dtype is the promoted one, as of `x + y`.
    """
    return x + y


def subtract(x: Tensor, y: Any) -> Tensor:
    """Subtracts element by element, $$x - y$$.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape; its dtype is the promoted one, as of `x - y`.
    """
    return x - y


def multiply(x: Tensor, y: Any) -> Tensor:
    r"""Multiplies element by element, $$x \cdot y$$.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape; its dtype is the promoted one, as of `x * y`.
    """
    return x * y


def divide(x: Tensor, y: Any) -> Tensor:
    """Divides element by element, $$x / y$$.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape, as of `x / y`.
    """
    return x / y


def floor_divide(x: Tensor, y: Any) -> Tensor:
    r"""Divides element by element and rounds down, $$\lfloor x / y \rfloor$$.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape, as of `x // y`.
    """
    return x // y


def mod(x: Tensor, y: Any) -> Tensor:
    r"""Takes the remainder of floor division element by element, $$x - y \lfloor x / y \rfloor$$, with the sign of y.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape, as of `x % y`.
    """
    return x % y


def remainder(x: Tensor, y: Any) -> Tensor:
    r"""Takes the remainder of floor division, $$x - y \lfloor x / y \rfloor$$, with the sign of y; another name of mod.

    Args:
        x: A tensor of numbers.
        y: A tensor whose shape broadcasts with that of x, or a number.

    Returns:
        Tensor of the broadcast shape, as of `x % y`.
    """
    return x % y


def maximum(x: Any, y: Any) -> Tensor:
    r"""Takes the larger of two elements, $$\max(x, y)$$.

    Args:
        x: A tensor, or a number if y is a tensor.
        y: A tensor whose shape broadcasts with that of x, or a number, which takes the dtype of x.

    Returns:
        Tensor of the broadcast shape.
    """
    return F.elementwise_max(*_both(x, y))


def minimum(x: Any, y: Any) -> Tensor:
    r"""Takes the smaller of two elements, $$\min(x, y)$$.

    Args:
        x: A tensor, or a number if y is a tensor.
        y: A tensor whose shape broadcasts with that of x, or a number, which takes the dtype of x.

    Returns:
        Tensor of the broadcast shape.
    """
    return F.elementwise_min(*_both(x, y))


def neg(x: Tensor) -> Tensor:
    """Negates each element, $$-x$$.

    Args:
        x: A tensor of numbers.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return -x


def isfinite(x: Tensor) -> Tensor:
    """Tells for each element whether it is neither infinite nor NaN.

    Args:
        x: A tensor of numbers.

    Returns:
        Tensor of bool, of the shape of x.
    """
    return F.isfinite_v2(x)


def isinf(x: Tensor) -> Tensor:
    """Tells for each element whether it is infinite.

    Args:
        x: A tensor of numbers.

    Returns:
        Tensor of bool, of the shape of x.
    """
    return F.isinf_v2(x)


def isnan(x: Tensor) -> Tensor:
    """Tells for each element whether it is NaN.

    Args:
        x: A tensor of numbers.

    Returns:
        Tensor of bool, of the shape of x.
    """
    return F.isnan_v2(x)


def isclose(x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    r"""Tells for each element whether x and y are close: $$|x - y| \le atol + rtol \cdot |y|$$.

    Args:
        x: A tensor of numbers.
        y: A tensor of the shape and dtype of x, or a number.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether two NaN are close.

    Returns:
        Tensor of bool, of the shape of x.
    """
    return F.isclose(*_both(x, y), rtol=repr(rtol), atol=repr(atol), equal_nan=equal_nan)


def allclose(x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    r"""Tells whether x and y are close everywhere: $$|x - y| \le atol + rtol \cdot |y|$$.

    Args:
        x: A tensor of numbers.
        y: A tensor of the shape and dtype of x, or a number.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether two NaN are close.

    Returns:
        Tensor of one bool.
    """
    return F.allclose(*_both(x, y), rtol=repr(rtol), atol=repr(atol), equal_nan=equal_nan)


def lerp(x: Tensor, y: Tensor, weight: Any) -> Tensor:
    r"""Interpolates linearly between two tensors, $$x + weight \cdot (y - x)$$.

    Args:
        x: Where weight 0 leads, a tensor of floats.
        y: Where weight 1 leads, a tensor that broadcasts with x.
        weight: A tensor that broadcasts with x, or a number.

    Returns:
        Tensor of the broadcast shape.
    """
    return x + (y - x) * weight


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    r"""Inverts the sigmoid, $$\ln \frac{x}{1 - x}$$.

    Args:
        x: Probabilities, floats.
        eps: x is cut to [eps, 1 - eps] first; None: it is not, and results beyond [0, 1] are NaN.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.logit(x, eps=0.0 if eps is None else float(eps))


def clip(x: Tensor, min: Any = None, max: Any = None, **attrs: Any) -> Tensor:
    """Cut to between two numbers, by op clip.

    Args:
        x: The tensor.
        min: The lower bound, a number or a tensor of one element; None: no bound.
        max: The upper bound.
        attrs: Attributes of the op.

    Returns:
        The tensor.

    Raises:
        InvalidArgumentError: There is no bound.
    """
    if min is None and max is None and not attrs:
        raise InvalidArgumentError("clip: min and max are None; expected a number for at least one of them")
    if x.dtype in RANGES and (min is None) != (max is None):  # infinity is no integer
        bound = max if min is None else min
        if not isinstance(bound, Tensor | Variable):
            bound = _number(x, [1] if x.shape else [], float(bound), str(int(bound)))
        return F.elementwise_min(x, bound) if min is None else F.elementwise_max(x, bound)
    for slot, bound, none in (("min", min, -math.inf), ("max", max, math.inf)):
        if rounded_by_attribute(x.dtype, bound):  # by the attribute, which is float32
            bound = _number(x, [1], float(bound), repr(bound))
        is_tensor = isinstance(bound, Tensor | Variable)
        attrs[slot] = none if bound is None or is_tensor else float(bound)
        if is_tensor:
            attrs[f"{slot}_input"] = bound
    return F.clip(x, **attrs)


def pow(x: Tensor, y: Any = None, **attrs: Any) -> Tensor:
    """Raises elements to a power, `x ** y`.

    Args:
        x: The tensor.
        y: The exponent, a number or a tensor that broadcasts; None: as the attributes say.
        attrs: Attributes of op pow, in place of y.

    Returns:
        Tensor of the broadcast shape.
    """
    return F.pow(x, **attrs) if y is None else x**y


def add_(x: Tensor, other: Any) -> Tensor:
    """Adds to a tensor in its own memory.

    Args:
        x: The tensor.
        other: A tensor that broadcasts to the shape of x, or a number.

    Returns:
        x itself.
    """
    return _in_place("add_", F.elementwise_add, x, other)


def sub_(x: Tensor, other: Any) -> Tensor:
    """Subtracts from a tensor in its own memory.

    Args:
        x: The tensor.
        other: A tensor that broadcasts to the shape of x, or a number.

    Returns:
        x itself.
    """
    return _in_place("sub_", F.elementwise_sub, x, other)


def scale_(x: Tensor, scale: float = 1.0, bias: float = 0.0) -> Tensor:
    """Replaces a tensor by scale * x + bias, in its own memory.

    Args:
        x: The tensor.
        scale: The factor.
        bias: What is added.

    Returns:
        x itself.
    """
    return F.scale(x, scale=float(scale), bias=float(bias), in_place=True)


def _number(x: Tensor, shape: list[int], value: float, text: str) -> Tensor:
    """A number as a tensor of the dtype and at the place of x."""
    found = F.fill_constant(shape=shape, dtype=x.dtype, value=value, str_value=text)
    return found.to(x.place) if isinstance(x, Tensor) else found


def _in_place(name: str, op: Callable[..., Any], x: Any, other: Any) -> Tensor:
    operand = other if isinstance(other, Tensor | Variable) else type(x).like(other, x)
    if operand.shape != x.shape and len(operand.shape) > len(x.shape):
        raise InvalidArgumentError(
            f"{name}: {x.describe()} can't hold a result of shape {list(operand.shape)} in place"
        )
    return op(x, operand, in_place=True)


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """A number beside a tensor as a tensor of its dtype."""
    if not hasattr(y, "shape"):
        y = F.fill_any_like(x, value=float(y))
    elif not hasattr(x, "shape"):
        x = F.fill_any_like(y, value=float(x))
    return x, y
