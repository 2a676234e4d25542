"""Functions of the listed elements of a sparse tensor; what is not listed stays zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack import Tensor


def sin(x: Tensor) -> Tensor:
    r"""$$\sin x$$ of the listed elements."""
    return F.sparse_sin(x)


def tan(x: Tensor) -> Tensor:
    r"""$$\tan x$$ of the listed elements."""
    return F.sparse_tan(x)


def asin(x: Tensor) -> Tensor:
    r"""$$\arcsin x$$ of the listed elements."""
    return F.sparse_asin(x)


def atan(x: Tensor) -> Tensor:
    r"""$$\arctan x$$ of the listed elements."""
    return F.sparse_atan(x)


def sinh(x: Tensor) -> Tensor:
    r"""$$\sinh x$$ of the listed elements."""
    return F.sparse_sinh(x)


def tanh(x: Tensor) -> Tensor:
    r"""$$\tanh x$$ of the listed elements."""
    return F.sparse_tanh(x)


def asinh(x: Tensor) -> Tensor:
    r"""$$\operatorname{arsinh} x$$ of the listed elements."""
    return F.sparse_asinh(x)


def atanh(x: Tensor) -> Tensor:
    r"""$$\operatorname{artanh} x$$ of the listed elements."""
    return F.sparse_atanh(x)


def sqrt(x: Tensor) -> Tensor:
    r"""$$\sqrt{x}$$ of the listed elements."""
    return F.sparse_sqrt(x)


def square(x: Tensor) -> Tensor:
    r"""$$x^2$$ of the listed elements."""
    return F.sparse_square(x)


def log1p(x: Tensor) -> Tensor:
    r"""$$\ln(1 + x)$$ of the listed elements."""
    return F.sparse_log1p(x)


def abs(x: Tensor) -> Tensor:
    r"""$$|x|$$ of the listed elements."""
    return F.sparse_abs(x)


def expm1(x: Tensor) -> Tensor:
    r"""$$e^x - 1$$ of the listed elements."""
    return F.sparse_expm1(x)


def isnan(x: Tensor) -> Tensor:
    """Whether each listed element is NaN."""
    return F.sparse_isnan(x)


def pow(x: Tensor, factor: float) -> Tensor:
    """Raises the listed elements to a power, $$x^{factor}$$: op sparse_pow.

    Args:
        x: A sparse tensor.
        factor: The exponent.

    Returns:
        A sparse tensor.
    """
    return F.sparse_pow(x, factor=float(factor))


def neg(x: Tensor) -> Tensor:
    """$$-x$$"""
    return _scaled(x, -1.0)


def deg2rad(x: Tensor) -> Tensor:
    r"""$$x \cdot \pi / 180$$"""
    return _scaled(x, math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    r"""$$x \cdot 180 / \pi$$"""
    return _scaled(x, 180 / math.pi)


def _scaled(x: Tensor, factor: float) -> Tensor:
    return F.sparse_scale(x, scale=factor, bias=0.0, bias_after_scale=True)


def cast(x: Tensor, index_dtype: Any = None, value_dtype: Any = None) -> Tensor:
    """Casts the values, and the integers of the pattern, to other dtypes: op sparse_cast.

    Args:
        x: A sparse tensor.
        index_dtype: The dtype of coordinates, or of rows and columns; None: unchanged.
        value_dtype: The dtype of values; None: unchanged.

    Returns:
        A sparse tensor.
    """
    numbers = [-1 if d is None else int(dtype_enum(d)) for d in (index_dtype, value_dtype)]
    return F.sparse_cast(x, index_dtype=numbers[0], value_dtype=numbers[1])


def coalesce(x: Tensor) -> Tensor:
    """Each element listed once, sorted by coordinates; what was listed several times is added up."""
    return F.sparse_coalesce(x)
