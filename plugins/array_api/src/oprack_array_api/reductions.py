"""Functions of the standard over dims: sums, products, extrema, means, logic, and running sums."""

from __future__ import annotations

import math
from typing import Any

from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.types import dtype_name, real_dtype

from oprack_array_api._operands import axes_of, cast, constant, named, numel, place_of, require_tensor, together
from oprack_array_api.creation import full, full_like
from oprack_array_api.dtypes import UNSIGNED, category
from oprack_array_api.manipulation import concat, reshape


def _reduced_shape(x: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    kept = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    return tuple(kept)


def _along(op: str, x: Any, axis: Any, keepdims: bool, name: str, neutral: Any = None, **attrs: Any) -> Tensor:
    """An op of the family of reductions; with `neutral` also over dims of size 0."""
    axes = axes_of(axis, require_tensor(x, name).ndim, name)
    if not x.ndim:
        return getattr(F, op)(x, reduce_all=True, keep_dim=keepdims, **attrs)
    if not axes:
        return x.clone()
    if not numel(x):
        shape = _reduced_shape(x, axes, keepdims)
        if neutral is None and math.prod(shape) != 0:
            raise InvalidArgumentError(f"{name}: {named(x)} has no elements along axis {axis}")
        dtype = "bool" if isinstance(neutral, bool) else x.dtype
        return full(shape, neutral or 0, dtype=dtype, device=place_of(x))
    whole = len(axes) == x.ndim
    dims = {"reduce_all": True} if whole else {"dim": list(axes)}
    found = getattr(F, op)(x, keep_dim=keepdims, **dims, **attrs)
    shape = _reduced_shape(x, axes, keepdims)
    return found if found.shape == shape else reshape(found, shape)


def _accumulated(x: Any, dtype: Any) -> Any:
    """x in the dtype of its sums and products: int64 or uint64 for small integers, else its own."""
    if dtype is not None:
        return cast(x, dtype_name(dtype))
    if category(x.dtype) in ("integral", "bool"):
        return cast(x, "uint64" if x.dtype in UNSIGNED else "int64")
    return x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Adds up elements over dims.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        dtype: Dtype of the sums; None: that of x, int64 or uint64 for integers and bools.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The sums.
    """
    wide = _accumulated(require_tensor(x, "sum"), dtype)
    if wide.dtype == "int32":  # op reduce_sum adds it as int64
        return cast(sum(cast(wide, "int64"), axis=axis, keepdims=keepdims), "int32")
    return _along("reduce_sum", wide, axis, keepdims, "sum", 0)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Multiplies elements over dims.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        dtype: Dtype of the products; None: that of x, int64 or uint64 for integers and bools.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The products.
    """
    return _along("reduce_prod", _accumulated(require_tensor(x, "prod"), dtype), axis, keepdims, "prod", 1)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Takes the greatest element over dims.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The maxima.

    Raises:
        InvalidArgumentError: There are no elements over which to reduce.
    """
    return _along("reduce_max", x, axis, keepdims, "max")


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Takes the least element over dims.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The minima.

    Raises:
        InvalidArgumentError: There are no elements over which to reduce.
    """
    return _along("reduce_min", x, axis, keepdims, "min")


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Takes the mean over dims; NaN over no elements.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The means.
    """
    return _along("reduce_mean", x, axis, keepdims, "mean", math.nan)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    r"""Computes the variance over dims, $$\sum |x_i - \bar x|^2 / (n - correction)$$.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        correction: What is subtracted from the number of elements: 0 for that of the elements, 1 for that of a sample.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The variances.
    """
    axes = axes_of(axis, x.ndim, "var")
    n = math.prod(x.shape[a] for a in axes)
    if not n:
        return full_like(sum(x, axis=axes, keepdims=keepdims), math.nan)
    away = F.elementwise_sub(x, mean(x, axis=axes, keepdims=True) if axes else x)
    squares = F.square(F.abs(away))
    rest = n - correction
    divisor = constant(rest if rest > 0 else 0.0, real_dtype(x.dtype), x)
    return F.elementwise_div(sum(squares, axis=axes, keepdims=keepdims), divisor)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Computes the standard deviation over dims, the square root of `var`.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        correction: What is subtracted from the number of elements: 0 for that of the elements, 1 for that of a sample.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        The standard deviations.
    """
    return F.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Tells whether all elements over dims are true.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of bool.
    """
    return _along("reduce_all", cast(x, "bool"), axis, keepdims, "all", True)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Tells whether any element over dims is true.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of bool.
    """
    return _along("reduce_any", cast(x, "bool"), axis, keepdims, "any", False)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Counts the elements over dims that are not 0.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.
        keepdims: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of int64.
    """
    return sum(cast(cast(require_tensor(x, "count_nonzero"), "bool"), "int64"), axis=axis, keepdims=keepdims)


def _one_axis(x: Any, axis: int | None, name: str) -> int:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: {named(x)} has {x.ndim} dims; expected an axis")
        return 0
    return axes_of(axis, x.ndim, name)[0]


def _running(x: Any, op: str, attr: str, axis: int | None, dtype: Any, first: Any, initial: int, name: str) -> Tensor:
    at = _one_axis(x, axis, name)
    wide = _accumulated(x, dtype)
    found = getattr(F, op)(wide, **{attr: at}) if numel(x) else wide.clone()
    if not first:
        return found
    shape = tuple(1 if i == at else n for i, n in enumerate(x.shape))
    return concat([full(shape, initial, dtype=wide.dtype, device=place_of(x)), found], axis=at)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Computes running sums along a dim.

    Args:
        x: A tensor.
        axis: The dim; None if x has one alone.
        dtype: Dtype of the sums; None: that of x, int64 or uint64 for integers and bools.
        include_initial: Whether a 0 comes first.

    Returns:
        Tensor of the shape of x, one longer along axis with include_initial.

    Raises:
        ValueError: axis is None and x has several dims.
    """
    return _running(x, "cumsum", "axis", axis, dtype, include_initial, 0, "cumulative_sum")


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Computes running products along a dim.

    Args:
        x: A tensor.
        axis: The dim; None if x has one alone.
        dtype: Dtype of the products; None: that of x, int64 or uint64 for integers and bools.
        include_initial: Whether a 1 comes first.

    Returns:
        Tensor of the shape of x, one longer along axis with include_initial.

    Raises:
        ValueError: axis is None and x has several dims.
    """
    return _running(x, "cumprod", "dim", axis, dtype, include_initial, 1, "cumulative_prod")


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along a dim, n times.

    Args:
        x: A tensor.
        axis: The dim.
        n: How often.
        prepend: What comes before x.
        append: What comes after it.

    Returns:
        The tensor; its dim is shorter by n.
    """
    (at,) = axes_of(axis, x.ndim, "diff")
    found = x
    if n and prepend is not None:
        found = concat([prepend, found], axis=at)
    if n and append is not None:
        found = concat([found, append], axis=at)
    lead = (slice(None),) * at
    for _ in range(n):
        late, early = found[(*lead, slice(1, None))], found[(*lead, slice(None, -1))]
        if found.dtype == "bool":
            found = F.logical_xor(late, early)
        else:
            found = F.elementwise_sub(*together(late, early, "diff"))
    return found.clone() if found is x else found
