"""Two tensors, or a tensor and a number, element by element, under the names of NumPy and Paddle 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


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


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """A number beside a tensor as a tensor of its dtype."""
    if not hasattr(y, "shape"):
        y = F.fill_any_like(x, value=float(y))
    elif not hasattr(x, "shape"):
        x = F.fill_any_like(y, value=float(x))
    return x, y
