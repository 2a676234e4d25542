"""Statistics of tensors: quantiles, differences, means without NaN, integrals."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import axis_in, cast_to, dtype_name, plain

Tensor = Any


def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None, name: Any = None) -> Tensor:
    """The n-th differences of neighbours along an axis."""
    axis = axis_in(axis, x.ndim, "diff")
    head = [builtins.slice(None)] * axis
    for _ in range(n):
        parts = [t for t in (prepend, x, append) if t is not None]  # Paddle joins them each time
        x = oprack.concat(parts, axis=axis) if len(parts) > 1 else x
        later, earlier = x[(*head, builtins.slice(1, None))], x[(*head, builtins.slice(None, -1))]
        x = F.logical_xor(later, earlier) if x.dtype == "bool" else later - earlier
    return x


def nansum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The sum, in which NaN counts as 0."""
    return oprack.sum(oprack.where(oprack.isnan(x), oprack.zeros_like(x), x), axis, keepdim, dtype)


def nanmean(x: Tensor, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The mean of the elements that are no NaN."""
    axis = list(axis) if isinstance(axis, tuple) else axis
    count = oprack.sum(F.logical_not(oprack.isnan(x)).astype(x.dtype), axis, keepdim)
    return nansum(x, axis, keepdim=keepdim) / count


def quantile(x: Tensor, q: Any, axis: Any = None, keepdim: bool = False) -> Tensor:
    """Quantiles by linear interpolation; NaN where there is one."""
    return _quantile(x, q, axis, keepdim, ignore_nan=False)


def nanquantile(x: Tensor, q: Any, axis: Any = None, keepdim: bool = False) -> Tensor:
    """Quantiles of the elements that are no NaN."""
    return _quantile(x, q, axis, keepdim, ignore_nan=True)


def _quantile(x: Tensor, q: Any, axis: Any, keepdim: bool, *, ignore_nan: bool) -> Tensor:
    several = isinstance(q, list | tuple | np.ndarray) or (hasattr(q, "ndim") and q.ndim > 0)
    levels = [float(v) for v in np.ravel(plain(q))]
    if not levels or any(not 0 <= v <= 1 for v in levels):
        raise ValueError(f"quantile: q is {plain(q)!r}; expected numbers from 0 to 1")
    dims = [d % x.ndim for d in (range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis)]
    rest = [d for d in range(x.ndim) if d not in dims]
    moved = x.transpose([*rest, *dims]).reshape([*[x.shape[d] for d in rest], -1]) if x.ndim else x.reshape([1])
    moved = oprack.sort(moved, axis=-1)  # NaN comes last
    shape = [1 if d in dims else x.shape[d] for d in range(x.ndim)] if keepdim else [x.shape[d] for d in rest]
    host = np.asarray(moved)
    bad = np.isnan(host)
    count = (
        host.shape[-1] - bad.sum(-1, keepdims=True) if ignore_nan else np.full((*host.shape[:-1], 1), host.shape[-1])
    )
    found = []
    for level in levels:
        place = np.maximum(level * (count - 1), 0).astype(np.float64)
        low = oprack.take_along_axis(moved, oprack.to_tensor(np.floor(place).astype(np.int64)), -1)
        high = oprack.take_along_axis(moved, oprack.to_tensor(np.ceil(place).astype(np.int64)), -1)
        part = oprack.to_tensor((place - np.floor(place)).astype(host.dtype))
        value = low + (high - low) * part
        if not ignore_nan and bad.any():
            value = oprack.where(oprack.to_tensor(bad.any(-1, keepdims=True)), value * math.nan, value)
        found.append(value.reshape(shape).astype("float64"))
    return oprack.stack(found, axis=0) if several else found[0]


def trapezoid(y: Tensor, x: Any = None, dx: Any = None, axis: int = -1, name: Any = None) -> Tensor:
    """The integral by the trapezoidal rule."""
    return _areas(y, x, dx, axis).sum(axis)


def cumulative_trapezoid(y: Tensor, x: Any = None, dx: Any = None, axis: int = -1, name: Any = None) -> Tensor:
    """The integrals up to each point by the trapezoidal rule."""
    return _areas(y, x, dx, axis).cumsum(axis)


def _areas(y: Tensor, x: Any, dx: Any, axis: int) -> Tensor:
    if x is not None and dx is not None:
        raise ValueError("trapezoid: x and dx are both given; expected one of them")
    axis = axis_in(axis, y.ndim, "trapezoid")
    head = [builtins.slice(None)] * axis
    pairs = y[(*head, builtins.slice(1, None))] + y[(*head, builtins.slice(None, -1))]
    if x is None:
        return pairs * (1.0 if dx is None else dx) / 2.0
    width = diff(x, axis=axis if x.ndim > 1 else -1)
    if x.ndim == 1:
        width = width.reshape([-1 if i == axis else 1 for i in range(y.ndim)])
    return pairs * width / 2.0


def bucketize(
    x: Tensor, sorted_sequence: Tensor, out_int32: bool = False, right: bool = False, name: Any = None
) -> Tensor:
    """Between which boundaries each element lies."""
    if sorted_sequence.ndim != 1:
        raise ValueError(f"bucketize: sorted_sequence has {sorted_sequence.ndim} dims; expected 1")
    return F.searchsorted(sorted_sequence, x, out_int32=out_int32, right=right)


def histogramdd(
    x: Tensor, bins: Any = 10, ranges: Any = None, density: bool = False, weights: Any = None, name: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """The counts of points of several dims in boxes, and the edges of the boxes."""
    host = np.asarray(x)
    edges = [np.asarray(b) for b in bins] if isinstance(bins, list | tuple) and hasattr(bins[0], "shape") else bins
    pairs = None if ranges is None else [tuple(ranges[i : i + 2]) for i in range(0, len(ranges), 2)]
    weight = None if weights is None else np.asarray(weights)
    counts, found = np.histogramdd(host, bins=edges, range=pairs, density=density, weights=weight)
    return oprack.to_tensor(counts.astype(host.dtype)), [oprack.to_tensor(e.astype(host.dtype)) for e in found]


def median(x: Tensor, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The middle element, or the mean of the two in the middle."""
    return oprack.median(x, axis, keepdim)


def cumsum(x: Tensor, axis: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    """Running sums along an axis; of all elements without one."""
    return oprack.cumsum(cast_to(x, dtype), axis)


def cumprod(x: Tensor, dim: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    """Running products along an axis; of all elements without one."""
    x = cast_to(x, dtype)
    return F.cumprod(x.reshape([-1]), dim=0) if dim is None else F.cumprod(x, dim=dim)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = None, name: Any = None) -> Tensor:
    """The product of elements."""
    return oprack.prod(cast_to(x, dtype), axis, keepdim)


def cov(
    x: Tensor, rowvar: bool = True, ddof: bool = True, fweights: Any = None, aweights: Any = None, name: Any = None
) -> Tensor:
    """The covariances of variables, which are the rows."""
    if x.ndim > 2:
        raise ValueError(f"cov: x has {x.ndim} dims; expected 1 or 2")
    rows = x.reshape([1, -1]) if x.ndim < 2 else x if rowvar else x.transpose([1, 0])
    n, weight = rows.shape[-1], None
    if fweights is not None:
        weight = fweights.astype(x.dtype)
    if aweights is not None:
        weight = aweights.astype(x.dtype) if weight is None else weight * aweights.astype(x.dtype)
    total = oprack.to_tensor(np.asarray(n, x.dtype)) if weight is None else weight.sum()
    mean = (rows if weight is None else rows * weight).sum(1, keepdim=True) / total
    if weight is None or not ddof:
        free = total - (1.0 if ddof else 0.0)
    elif aweights is None:
        free = total - 1.0
    else:
        free = total - (weight * aweights.astype(x.dtype)).sum() / total
    centred = rows - mean
    other = centred if weight is None else centred * weight
    found = F.matmul_v2(centred, other, trans_y=True) / oprack.clip(free, 0.0)
    return found.reshape([]) if x.ndim < 2 else found


def corrcoef(x: Tensor, rowvar: bool = True, name: Any = None) -> Tensor:
    """The correlation coefficients of variables, which are the rows."""
    c = cov(x, rowvar)
    if c.ndim == 0:
        return c / c
    scale = oprack.sqrt(oprack.diagonal(c))
    return oprack.clip(c / scale.reshape([-1, 1]) / scale.reshape([1, -1]), -1.0, 1.0)


def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "", name: Any = None) -> Tensor:
    """The p-norm distance of each row of x to each row of y."""
    gaps = x.unsqueeze(-2) - y.unsqueeze(-3)
    return p_norm(gaps, p, -1)


def pdist(x: Tensor, p: float = 2.0, compute_mode: str = "", name: Any = None) -> Tensor:
    """The p-norm distances of all pairs of rows."""
    a, b = np.triu_indices(x.shape[0], 1)
    return p_norm(F.gather(x, oprack.to_tensor(a)) - F.gather(x, oprack.to_tensor(b)), p, -1)


def p_norm(x: Tensor, p: float, axis: int, keepdim: bool = False) -> Tensor:
    """The p-norm along an axis, without a small number added."""
    size = F.abs(x)
    if p == 0:
        return (size != 0).astype(x.dtype).sum(axis, keepdim=keepdim)
    if math.isinf(p):
        return oprack.max(size, axis, keepdim) if p > 0 else oprack.min(size, axis, keepdim)
    if p == 1:
        return size.sum(axis, keepdim=keepdim)
    return F.p_norm(x, axis=axis, porder=float(p), keepdim=keepdim, epsilon=0.0)


def dist(x: Tensor, y: Tensor, p: float = 2, name: Any = None) -> Tensor:
    """The p-norm of a difference."""
    return F.dist(x, y, p=float(p))


def histogram(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, name: Any = None) -> Tensor:
    """The counts of elements in bins of equal width."""
    return F.histogram(input, bins=bins, min=int(min), max=int(max))


def count_nonzero(x: Tensor, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """How many elements are not zero."""
    return oprack.sum((x != 0).astype("int64"), axis, keepdim)


def nanmedian(x: Tensor, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The median of the elements that are no NaN."""
    return _one(
        F.nanmedian(x, axis=[] if axis is None else [axis] if isinstance(axis, int) else list(axis), keepdim=keepdim)
    )


def mode(x: Tensor, axis: int = -1, keepdim: bool = False, name: Any = None) -> Any:
    """The most frequent element, and where it is last."""
    return F.mode(x, axis=axis, keepdim=keepdim)


def bincount(x: Tensor, weights: Any = None, minlength: int = 0, name: Any = None) -> Tensor:
    """How often each number occurs."""
    return F.bincount(x, weights, minlength=minlength)


def _one(found: Any) -> Tensor:
    """The first output."""
    return found[0] if isinstance(found, tuple) else found


def sum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The sum of elements."""
    if isinstance(dtype, bool):  # as oprack's own packs order the arguments
        dtype, keepdim = None, dtype
    return oprack.sum(x, axis, keepdim, dtype_name(dtype))


def argmax(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = "int64", name: Any = None) -> Tensor:
    """Where the largest element is."""
    return _place(oprack.argmax(x, axis, keepdim), dtype, "argmax")


def argmin(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = "int64", name: Any = None) -> Tensor:
    """Where the smallest element is."""
    return _place(oprack.argmin(x, axis, keepdim), dtype, "argmin")


def std(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: Any = None) -> Tensor:
    """The standard deviation."""
    return oprack.sqrt(var(x, axis, unbiased, keepdim))


def var(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: Any = None) -> Tensor:
    """The variance; of one element 0."""
    if x.ndim == 0:
        return x * 0.0
    dims = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    several = math.prod(x.shape[d] for d in dims) != 1
    return oprack.var(x, axis, unbiased and several, keepdim)


def _place(found: Tensor, dtype: Any, name: str) -> Tensor:
    if dtype is None:
        raise ValueError(f"{name}: dtype is None; expected 'int32' or 'int64'")
    return found if dtype_name(dtype) == "int64" else found.astype(dtype_name(dtype))


def searchsorted(
    sorted_sequence: Tensor, values: Tensor, out_int32: bool = False, right: bool = False, name: Any = None
) -> Tensor:
    """Where each value has to stand among sorted ones."""
    return F.searchsorted(sorted_sequence, values, out_int32=out_int32, right=right)


def cummax(x: Tensor, axis: Any = None, dtype: Any = "int64", name: Any = None) -> Any:
    """Running maxima along an axis, and where they are; of all elements without one."""
    return _running(F.cummax, x, axis, dtype)


def cummin(x: Tensor, axis: Any = None, dtype: Any = "int64", name: Any = None) -> Any:
    """Running minima along an axis, and where they are; of all elements without one."""
    return _running(F.cummin, x, axis, dtype)


def _running(op: Any, x: Tensor, axis: Any, dtype: Any) -> Any:
    found = op(x.reshape([-1]) if axis is None else x, axis=-1 if axis is None else axis, dtype=dtype_name(dtype))
    return tuple(found)
