"""Reductions and running sums that need more than one op, or other arguments than their op has."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.names.spellings import in_other_words, refuse_others

if TYPE_CHECKING:
    from oprack import Tensor

Axis = int | Sequence[int] | None
_ARGUMENTS = "axis, keepdim"


def sum(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: object = None, **other: Any) -> Tensor:
    """Adds up the elements over all dims or some.

    Args:
        x: The tensor.
        axis: A dim or a list of dims; None: all.
        keepdim: Whether reduced dims stay, with size 1.
        dtype: The dtype to which elements are cast before they are added; None: their own.
        other: NumPy's and PyTorch's names of the parameters, such as dim.

    Returns:
        The sums.

    Raises:
        TypeError: There is no argument of that name.
    """
    if other:
        axis, keepdim = in_other_words("sum", other, axis=axis, keepdim=keepdim)
    return _reduced(F.reduce_sum, x if dtype is None else x.astype(dtype), axis, keepdim)


def mean(x: Tensor, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Takes the mean of the elements over all dims or some.

    Args:
        x: The tensor.
        axis: A dim or a list of dims; None: all.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, such as dim.

    Returns:
        The means.

    Raises:
        TypeError: There is no argument of that name.
    """
    if other:
        axis, keepdim = in_other_words("mean", other, axis=axis, keepdim=keepdim)
    return _reduced(F.reduce_mean, x, axis, keepdim)


def max(x: Tensor, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Takes the largest element over all dims or some; argmax says where it is.

    Args:
        x: The tensor.
        axis: A dim or a list of dims; None: all.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

    Returns:
        The maxima.

    Raises:
        TypeError: There is no argument of that name; the message says which to write.
    """
    if other:
        _refuse_places("max", other)
    return _reduced(F.reduce_max, x, axis, keepdim)


def min(x: Tensor, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Takes the smallest element over all dims or some; argmin says where it is.

    Args:
        x: The tensor.
        axis: A dim or a list of dims; None: all.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

    Returns:
        The minima.

    Raises:
        TypeError: There is no argument of that name; the message says which to write.
    """
    if other:
        _refuse_places("min", other)
    return _reduced(F.reduce_min, x, axis, keepdim)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Multiplies the elements over all dims or some.

    Args:
        x: The tensor.
        axis: A dim or a list of dims; None: all.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, such as dim.

    Returns:
        The products.

    Raises:
        TypeError: There is no argument of that name.
    """
    if other:
        axis, keepdim = in_other_words("prod", other, axis=axis, keepdim=keepdim)
    return _reduced(F.reduce_prod, x, axis, keepdim)


def argmax(x: Tensor, axis: int | None = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Finds the place of the largest element along a dim, or among all elements.

    Args:
        x: The tensor.
        axis: The dim; None: of the flattened tensor.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, such as dim.

    Returns:
        Tensor of int64.

    Raises:
        TypeError: There is no argument of that name.
    """
    if other:
        axis, keepdim = in_other_words("argmax", other, axis=axis, keepdim=keepdim)
    return _place(F.arg_max, x, axis, keepdim)


def argmin(x: Tensor, axis: int | None = None, keepdim: bool = False, **other: Any) -> Tensor:
    """Finds the place of the smallest element along a dim, or among all elements.

    Args:
        x: The tensor.
        axis: The dim; None: of the flattened tensor.
        keepdim: Whether reduced dims stay, with size 1.
        other: NumPy's and PyTorch's names of the parameters, such as dim.

    Returns:
        Tensor of int64.

    Raises:
        TypeError: There is no argument of that name.
    """
    if other:
        axis, keepdim = in_other_words("argmin", other, axis=axis, keepdim=keepdim)
    return _place(F.arg_min, x, axis, keepdim)


def _refuse_places(call: str, other: dict[str, Any]) -> NoReturn:
    """Refuse PyTorch's `dim`, with which these functions give places as well: `x.max(dim=1)[0]` would be one row."""
    if isinstance(other.get("dim"), int):
        dim = other["dim"]
        raise TypeError(
            f"{call}: got dim={dim}, with which PyTorch gives values and places; write axis={dim} for the values, and "
            f"x.arg{call}(axis={dim}) for the places"
        )
    refuse_others(call, _ARGUMENTS, other)


def _reduced(op: Callable[..., Any], x: Tensor, axis: Any, keepdim: bool) -> Tensor:
    if axis is None:
        return op(x, reduce_all=True, keep_dim=keepdim)
    return op(x, dim=[int(a) for a in axis] if isinstance(axis, list | tuple) else [int(axis)], keep_dim=keepdim)


def _place(op: Callable[..., Any], x: Tensor, axis: int | None, keepdim: bool) -> Tensor:
    if axis is None:
        flat = x.flatten() if x.ndim > 1 else x
        found = op(flat, axis=0, keepdims=False, dtype="int64")
        return found.reshape([1] * x.ndim) if keepdim else found
    return op(x, axis=axis, keepdims=keepdim, dtype="int64")


def all(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Tells whether all elements are true, over all dims or some.

    Args:
        x: A tensor of bools; numbers are true unless they are 0.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of bool.
    """
    return F.reduce_all(_bools(x), **_dims(axis, keepdim))


def any(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Tells whether any element is true, over all dims or some.

    Args:
        x: A tensor of bools; numbers are true unless they are 0.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of bool.
    """
    return F.reduce_any(_bools(x), **_dims(axis, keepdim))


def amax(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Takes the maximum over all dims or some; elements that are equal share its gradient evenly.

    Args:
        x: A tensor of numbers.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.
    """
    return F.reduce_amax(x, **_dims(axis, keepdim))


def amin(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Takes the minimum over all dims or some; elements that are equal share its gradient evenly.

    Args:
        x: A tensor of numbers.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.
    """
    return F.reduce_amin(x, **_dims(axis, keepdim))


def var(x: Tensor, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    r"""Computes the variance over all dims or some.

    $$\frac{1}{n - 1} \sum_i (x_i - \bar x)^2$$; NaN where the number to divide by is 0 or less.

    Args:
        x: A tensor of floats.
        axis: A dim or several, over which to reduce; None: all.
        unbiased: Whether to divide by n - 1; False: by n.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        InvalidArgumentError: A size over which to reduce is not known while a program is written.
    """
    difference = x - x.mean(axis, keepdim=True)
    total = (difference * difference).sum(axis, keepdim)
    # the dim of a tensor without dims is 0 or -1
    sizes = [x.shape[d] for d in (range(x.ndim) if axis is None else _ints(axis))] if x.ndim else []
    n = math.prod(sizes) - bool(unbiased)
    if not isinstance(n, int):
        return total / n  # known when the program runs; 0 / 0 is NaN
    if builtins.min(sizes, default=1) < 0:
        raise InvalidArgumentError(
            f"var: x has shape {list(x.shape)}, in which a size over which to reduce is not known while a program is "
            "written; expected known ones, or a function that oprack.to_program captures"
        )
    return total / float(n) if n > 0 else total * math.nan


def std(x: Tensor, axis: Axis = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    r"""Computes the standard deviation over all dims or some, $$\sqrt{var(x)}$$.

    Args:
        x: A tensor of floats.
        axis: A dim or several, over which to reduce; None: all.
        unbiased: Whether the variance is divided by n - 1; False: by n.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        InvalidArgumentError: As var.
    """
    return F.sqrt(var(x, axis, unbiased, keepdim))


def median(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """Takes the median: the middle element, or the mean of the two in the middle; NaN if any element is NaN.

    Args:
        x: A tensor of numbers.
        axis: The dim; None: of all elements.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x; of an even number of integers, floats.

    Raises:
        InvalidArgumentError: There is no such dim, it has no elements, or its size is not known while a program is
            written.
    """
    limit = builtins.max(x.ndim, 1)
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
    worst = worst if worst.dtype == middle.dtype else worst.astype(middle.dtype)  # halves of integers are floats
    found = F.where(worst != worst, worst, middle)
    if axis is None:
        return found.reshape([1] * x.ndim if keepdim else [])
    return found if keepdim else found.squeeze(dim)


def logsumexp(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    r"""Computes the logarithm of the sum of exponentials over all dims or some, without overflow.

    $$\log \sum_i e^{x_i}$$

    Args:
        x: A tensor of floats.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.
    """
    if axis is None:
        return F.logsumexp(x, reduce_all=True, keepdim=keepdim)
    return F.logsumexp(x, axis=_ints(axis), keepdim=keepdim)


def cumsum(x: Tensor, axis: int | None = None, dtype: object = None, **attrs: Any) -> Tensor:
    r"""Computes running sums along a dim, $$out_i = \sum_{j \le i} x_j$$.

    Args:
        x: A tensor of numbers.
        axis: The dim; None: of the flattened tensor.
        dtype: The dtype to which x is cast first; None: its own.
        attrs: Attributes of op cumsum: exclusive, reverse.

    Returns:
        Tensor of the shape of x, flat if axis is None.
    """
    x = x if dtype is None else x.astype(dtype)
    return F.cumsum(x, flatten=True, **attrs) if axis is None else F.cumsum(x, axis=int(axis), **attrs)


def cumprod(x: Tensor, dim: int | None = None, dtype: object = None) -> Tensor:
    r"""Computes running products along a dim, $$out_i = \prod_{j \le i} x_j$$.

    Args:
        x: A tensor of numbers.
        dim: The dim; None: of the flattened tensor.
        dtype: The dtype to which x is cast first; None: its own.

    Returns:
        Tensor of the shape of x, flat if dim is None.
    """
    x = x if dtype is None else x.astype(dtype)
    return F.cumprod(x.reshape([-1]), dim=0) if dim is None else F.cumprod(x, dim=int(dim))


def count_nonzero(x: Tensor, axis: Axis = None, keepdim: bool = False) -> Tensor:
    """Counts elements that are not 0, over all dims or some.

    Args:
        x: A tensor of numbers.
        axis: A dim or several, over which to reduce; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of int64.
    """
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
    """Finds the k-th smallest element along a dim.

    Args:
        x: A tensor of numbers.
        k: Which one, counted from 1.
        axis: The dim.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        (values, indices): the elements in the dtype of x, and their places along axis as int64.
    """
    found = F.kthvalue(x, k=int(k), axis=int(axis), keepdim=keepdim)
    return found.out, found.indices
