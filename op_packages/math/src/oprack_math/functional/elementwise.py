"""Two tensors, or a tensor and a number, element by element, under the names of NumPy and Paddle 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def add(x: Tensor, y: Any) -> Tensor:
    """$$x + y$$"""
    return x + y


def subtract(x: Tensor, y: Any) -> Tensor:
    """$$x - y$$"""
    return x - y


def multiply(x: Tensor, y: Any) -> Tensor:
    r"""$$x \cdot y$$, element by element."""
    return x * y


def divide(x: Tensor, y: Any) -> Tensor:
    """$$x / y$$"""
    return x / y


def floor_divide(x: Tensor, y: Any) -> Tensor:
    r"""$$\lfloor x / y \rfloor$$"""
    return x // y


def mod(x: Tensor, y: Any) -> Tensor:
    r"""$$x - y \lfloor x / y \rfloor$$, with the sign of y."""
    return x % y


def remainder(x: Tensor, y: Any) -> Tensor:
    r"""$$x - y \lfloor x / y \rfloor$$, with the sign of y."""
    return x % y


def maximum(x: Any, y: Any) -> Tensor:
    r"""$$\max(x, y)$$"""
    return F.elementwise_max(*_both(x, y))


def minimum(x: Any, y: Any) -> Tensor:
    r"""$$\min(x, y)$$"""
    return F.elementwise_min(*_both(x, y))


def neg(x: Tensor) -> Tensor:
    """$$-x$$"""
    return -x


def isfinite(x: Tensor) -> Tensor:
    """Whether elements are neither infinite nor NaN."""
    return F.isfinite_v2(x)


def isinf(x: Tensor) -> Tensor:
    """Whether elements are infinite."""
    return F.isinf_v2(x)


def isnan(x: Tensor) -> Tensor:
    """Whether elements are NaN."""
    return F.isnan_v2(x)


def isclose(x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    r"""Whether $$|x - y| \le atol + rtol \cdot |y|$$, element by element."""
    return F.isclose(*_both(x, y), rtol=repr(rtol), atol=repr(atol), equal_nan=equal_nan)


def allclose(x: Tensor, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    r"""Whether $$|x - y| \le atol + rtol \cdot |y|$$ everywhere: one bool."""
    return F.allclose(*_both(x, y), rtol=repr(rtol), atol=repr(atol), equal_nan=equal_nan)


def lerp(x: Tensor, y: Tensor, weight: Any) -> Tensor:
    r"""$$x + weight \cdot (y - x)$$"""
    return x + (y - x) * weight


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    r"""$$\ln \frac{x}{1 - x}$$ eps: how near to 0 and 1 x may come; without it, x is not cut, and NaN beyond [0, 1]."""
    return F.logit(x, eps=0.0 if eps is None else float(eps))


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """A number beside a tensor as a tensor of its dtype."""
    if not hasattr(y, "shape"):
        y = F.fill_any_like(x, value=float(y))
    elif not hasattr(x, "shape"):
        x = F.fill_any_like(y, value=float(x))
    return x, y
