"""What is sorted, counted and summed up."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported


def dtype_of(call: Call, name: str = "dtype") -> VarType:
    """The dtype that an attribute names."""
    return VarType(call.attr(name))


@exported("argsort", "top_k", "kthvalue")
def argsort(call: Call) -> None:
    x = read(call)
    if call.type == "argsort":
        axis = call.attr("axis") % max(call.rank(), 1)
        if not call.rank():
            x = x.reshape(1)
        values, places = x.top(x.size(axis), axis, bool(call.attr("descending")))
        if not call.rank():
            values, places = values.scalar(), places.scalar()
    elif call.type == "top_k":
        k = maybe(call, "K")
        values, places = x.top(call.attr("k") if k is None else k.cast(VarType.INT64))
    else:
        k, axis = call.attr("k"), call.attr("axis") % max(call.rank(), 1)
        found = [v.slice(k - 1, k, axis) for v in x.top(k, axis, False)]
        values, places = found if call.attr("keepdim") else [v.squeeze(axis) for v in found]
    write(call, values)
    write(call, places, "Indices")


@exported("searchsorted")
def searchsorted(call: Call) -> None:
    """How many of the sorted ones lie before each value: all pairs are compared."""
    ordered, values = read(call, "SortedSequence"), read(call, "Values")
    rows, wanted = ordered.unsqueeze(-2), values.unsqueeze(-1)
    before = rows <= wanted if call.attr("right") else rows < wanted
    count = before.cast(VarType.INT64).sum(-1)
    write(call, count.cast(VarType.INT32) if call.attr("out_int32") else count)


@exported("cummax", "cummin")
def cummax(call: Call) -> None:
    """The largest one so far, and where it last stood: pairs along an axis are compared."""
    rank = call.rank("x")
    x, axis = read(call, "x"), call.attr("axis") % max(rank, 1)
    order = [i for i in range(rank) if i != axis] + [axis]
    y = x.transpose(*order)
    n = y.size(-1)
    place = arange(n)
    earlier = place.unsqueeze(0) <= place.unsqueeze(1)  # [to, from]
    limit = np.finfo if x.is_float() else np.iinfo
    lowest = limit(numpy_dtype(x.dtype)).min if call.type == "cummax" else limit(numpy_dtype(x.dtype)).max
    seen = earlier.select(y.unsqueeze(-2), lowest)
    best = seen.max(-1) if call.type == "cummax" else seen.min(-1)
    hit = earlier & y.unsqueeze(-2).equal(best.unsqueeze(-1))
    where = hit.select(place, -1).max(-1)
    back = [int(i) for i in np.argsort(order)]
    write(call, best.transpose(*back), "out")
    write(call, where.transpose(*back).cast(dtype_of(call)), "indices")


@exported("mode")
def mode(call: Call) -> None:
    """The one that is there most often, the smallest of several, and where it stands last."""
    rank = call.rank()
    if not rank:
        raise UnimplementedError("it takes the mode of a number")
    x, axis = read(call), call.attr("axis") % rank
    order = [i for i in range(rank) if i != axis] + [axis]
    y = x.transpose(*order)
    count = y.unsqueeze(-1).equal(y.unsqueeze(-2)).cast(VarType.INT64).sum(-1)
    most = count.equal(count.max(-1, keep=True))
    limit = (np.finfo if x.is_float() else np.iinfo)(numpy_dtype(x.dtype)).max
    value = most.select(y, limit).min(-1, keep=True)
    place = y.equal(value).select(arange(y.size(-1)), -1).max(-1, keep=True)
    for slot, found in (("Out", value), ("Indices", place)):
        back = found.transpose(*[int(i) for i in np.argsort(order)])
        write(call, back if call.attr("keepdim") else back.squeeze(axis), slot)


@exported("unique", "unique_with_counts")
def unique(call: Call) -> None:
    """Unique of ONNX; `unique` without is_sorted keeps the order in which values come."""
    x = read(call)
    if call.type == "unique" and call.attr("axis"):
        axis: int | None = call.attr("axis")[0]
    else:
        axis = None
    kept = call.type == "unique" and bool(call.attr("is_sorted"))
    int64 = VarType.INT64
    found = x.ops("Unique", 4, dtypes=(x.dtype, int64, int64, int64), axis=axis, sorted=int(kept))
    number = dtype_of(call)
    write(call, found[0])
    old = call.type == "unique_with_counts"
    names = (
        ((None, 1), ("Index", 2), ("Count" if old else "Counts", 3))
        if old
        else (("Indices", 1), ("Index", 2), ("Counts", 3))
    )
    for slot, i in names:
        if slot:
            write(call, found[i].cast(number), slot)


@exported("unique_consecutive")
def unique_consecutive(call: Call) -> None:
    """What differs from the one before it begins a run."""
    if call.attr("axis"):
        raise UnimplementedError("it compares slices along an axis")
    x = read(call).reshape(-1)
    one = constant(call.graph, [True], VarType.BOOL)
    begins = one.join(~x.slice(1, LAST).equal(x.slice(0, -1)), axis=0).slice(0, x.size(0))
    starts = begins.nonzero().reshape(-1)
    number = VarType(call.attr("dtype")) if call.attr("dtype") in (2, 3) else VarType.INT64
    write(call, x.gather(starts))
    write(call, (begins.cast(VarType.INT64).cumsum() - 1).cast(number), "Index")
    ends = starts.slice(1, LAST).join(x.size(0), axis=0)
    write(call, (ends - starts).cast(number), "Counts")


@exported("bincount")
def bincount(call: Call) -> None:
    x, weights = read(call).cast(VarType.INT64), maybe(call, "Weights")
    size = x.max().reshape(1) + 1
    size = size.maximum(call.attr("minlength"))
    values = full(x.shape(), 1, VarType.INT64) if weights is None else weights
    write(call, full(size, 0, values.dtype).scatter_add(x, values))


@exported("histogram")
def histogram(call: Call) -> None:
    bins, low, high = call.attr("bins"), call.attr("min"), call.attr("max")
    x = read(call).reshape(-1).cast(VarType.FP64)
    bounds = [x.like(float(v)) for v in (low, high)]
    if low == high:  # what there is, or a step around what is all the same
        bounds = [x.min(), x.max()] if low == 0 else bounds
        same = bounds[0].equal(bounds[1])
        bounds = [same.select(b + d, b) for b, d in zip(bounds, (-1.0, 1.0), strict=True)]
    first, last = bounds
    inside = (x >= first) & (x <= last)
    place = (
        ((x - first) * float(bins) / (last - first)).op("Floor").op("Clip", 0.0, float(bins - 1)).cast(VarType.INT64)
    )
    write(call, full(constant(call.graph, [bins]), 0, VarType.INT64).scatter_add(place, inside.cast(VarType.INT64)))


@exported("segment_pool")
def segment_pool(call: Call) -> None:
    x, ids = read(call), read(call, "SegmentIds").cast(VarType.INT64)
    write_pooled(call, x, ids, ids.slice(-1, LAST).reshape(1) + 1)


def write_pooled(call: Call, x: Expr, ids: Expr, count: Expr) -> None:
    """Rows reduced by segments; segments without rows are 0."""
    how = call.attr("pooltype")
    shape = count.join(x.shape(1), axis=0)
    sizes = full(count, 0, VarType.INT64).scatter_add(ids, full(ids.shape(), 1, VarType.INT64))
    lengths = sizes.cast(x.dtype).reshape(count, *[1] * (call.rank() - 1))
    if how in ("SUM", "MEAN"):
        out = full(shape, 0, x.dtype).scatter_add(ids, x)
        if how == "MEAN":
            out = out / lengths.maximum(1)
            write(call, lengths, "SummedIds")
    else:
        limit = (np.finfo if x.is_float() else np.iinfo)(numpy_dtype(x.dtype))
        start, op = (limit.min, "max") if how == "MAX" else (limit.max, "min")
        out = (lengths > 0).select(full(shape, start, x.dtype).scatter_add(ids, x, op), 0)
    write(call, out)


@exported("cumprod")
def cumprod(call: Call) -> None:
    """Products up to each place: along an axis, all that came before are multiplied."""
    rank = call.rank()
    x, axis = read(call), call.attr("dim") % max(rank, 1)
    order = [i for i in range(rank) if i != axis] + [axis]
    y = x.transpose(*order)
    place = arange(y.size(-1))
    earlier = place.unsqueeze(0) <= place.unsqueeze(1)
    out = earlier.select(y.unsqueeze(-2), 1).reduce("Prod", [-1])
    write(call, out.transpose(*[int(i) for i in np.argsort(order)]))


@exported("logcumsumexp")
def logcumsumexp(call: Call) -> None:
    x, axis = read(call), call.attr("axis")
    if call.attr("exclusive"):
        raise UnimplementedError("it leaves out the place itself")
    if call.attr("flatten"):
        x, axis = x.reshape(-1), 0
    largest = x.max(axis, keep=True)
    flags = {"exclusive": int(call.attr("exclusive")), "reverse": int(call.attr("reverse"))}
    write(call, (x - largest).exp().cumsum(axis, **flags).log() + largest)


@exported("reduce_amax", "reduce_amin")
def reduce_amax(call: Call) -> None:
    axes: Any = None if call.attr("reduce_all") or not call.attr("dim") else call.attr("dim")
    how = "Max" if call.type == "reduce_amax" else "Min"
    write(call, read(call).reduce(how, axes, bool(call.attr("keep_dim"))))
