"""Reductions and running sums that need more than one op, or other arguments than their op has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oprack import Tensor

Axis = int | Sequence[int] | None


def all(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, over all dims or some."""
    return F.reduce_all(_bools(x), **_dims(axis, keepdim))


def any(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, over all dims or some."""
    return F.reduce_any(_bools(x), **_dims(axis, keepdim))


def amax(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """The largest, over all dims or some; equal ones share the gradient evenly."""
    return F.reduce_amax(x, **_dims(axis, keepdim))


def amin(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """The smallest, over all dims or some; equal ones share the gradient evenly."""
    return F.reduce_amin(x, **_dims(axis, keepdim))


def var(x: Tensor, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    r"""$$\frac{1}{n - 1} \sum_i (x_i - \bar x)^2$$ over all dims or some; n instead of n - 1 with unbiased=False.

    NaN where the number to divide by is 0 or less.
    """
    difference = x - x.mean(axis, keepdim=True)
    total = (difference * difference).sum(axis, keepdim)
    # the dim of a tensor without dims is 0 or -1
    sizes = [x.shape[d] for d in (range(x.ndim) if axis is None else _ints(axis))] if x.ndim else []
    n = math.prod(sizes) - bool(unbiased)
    if not isinstance(n, int):
        return total / n  # known when the program runs; 0 / 0 is NaN
    if min(sizes, default=1) < 0:
        raise InvalidArgumentError(
            f"var: x has shape {list(x.shape)}, in which a size over which to reduce is not known while a program is "
            "written; expected known ones, or a function that oprack.to_program captures"
        )
    return total / float(n) if n > 0 else total * math.nan


def std(x: Tensor, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    r"""$$\sqrt{var(x)}$$"""
    return F.sqrt(var(x, axis, unbiased, keepdim))


def median(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The middle element, or the mean of the two in the middle, of all or of a dim; NaN where one is there."""
    limit = max(x.ndim, 1)
    if axis is not None and not -limit <= int(axis) < limit:
        raise InvalidArgumentError(
            f"median: axis is {axis} and x has shape {list(x.shape)}; expected an axis between {-limit} and {limit - 1}"
        )
    if not x.ndim:
        axis = None
    flat, dim = (x.reshape([-1]), 0) if axis is None else (x, int(axis))
    n = flat.shape[dim]
    if n < 1:
        raise InvalidArgumentError(
            f"median: x has shape {list(x.shape)} and axis is {axis}; expected at least one element, of a size that is "
            "known while a program is written"
        )
    ordered = F.argsort(flat, axis=dim).out
    middle = ordered.gather(F.fill_constant(shape=[1], dtype="int64", value=float(n // 2)), axis=dim)
    if n % 2 == 0:
        below = ordered.gather(F.fill_constant(shape=[1], dtype="int64", value=float(n // 2 - 1)), axis=dim)
        middle = (middle + below) / 2.0
    worst = flat.sum(dim, keepdim=True)
    found = F.where(worst != worst, worst, middle)
    if axis is None:
        return found.reshape([1] * x.ndim if keepdim else [])
    return found if keepdim else found.squeeze(dim)


def logsumexp(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    r"""$$\log \sum_i e^{x_i}$$ over all dims or some."""
    if axis is None:
        return F.logsumexp(x, reduce_all=True, keepdim=keepdim)
    return F.logsumexp(x, axis=_ints(axis), keepdim=keepdim)


def cumsum(x: Tensor, axis: int | None = None, dtype: object = None, **attrs: Any) -> Tensor:
    r"""$$out_i = \sum_{j \le i} x_j$$ along a dim; without one, of the flat tensor. attrs: of op cumsum."""
    x = x if dtype is None else x.astype(dtype)
    return F.cumsum(x, flatten=True, **attrs) if axis is None else F.cumsum(x, axis=int(axis), **attrs)


def cumprod(x: Tensor, dim: int | None = None, dtype: object = None) -> Tensor:
    r"""$$out_i = \prod_{j \le i} x_j$$ along a dim; without one, of the flat tensor."""
    x = x if dtype is None else x.astype(dtype)
    return F.cumprod(x.reshape([-1]), dim=0) if dim is None else F.cumprod(x, dim=int(dim))


def count_nonzero(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """How many elements are not 0, over all dims or some: int64."""
    return _bools(x).astype("int64").sum(axis, keepdim)


def _bools(x: Tensor) -> Tensor:
    # x != 0 takes what lies below 1e-8 for 0, as Paddle's op does
    return x if x.dtype == "bool" else x.astype("bool")


def _ints(value: Any) -> list[int]:
    return [int(v) for v in value] if isinstance(value, list | tuple) else [int(value)]


def _dims(axis: Axis, keepdim: bool) -> dict[str, Any]:
    if axis is None:
        return {"reduce_all": True, "keep_dim": keepdim}
    return {"dim": _ints(axis), "keep_dim": keepdim}


def kthvalue(x: Tensor, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element of a dim, counted from 1, and where it is: (values, indices)."""
    found = F.kthvalue(x, k=int(k), axis=int(axis), keepdim=keepdim)
    return found.out, found.indices
