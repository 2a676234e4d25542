"""One row for each sequence or segment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import Packing, offsets_of, segment_ids, segment_sum, sequence_offsets, with_lod


# segment_pool ---------------------------------------------------------------------------------------------------------
@kernel("segment_pool", dtypes=FLOATS | INTEGERS | {"float16"})
def segment_pool(X: Array, SegmentIds: Array, *, pooltype: str, ctx: KernelContext) -> tuple[Array, Array]:
    """One reduction over the runs of equal ids."""
    counts = _counts(SegmentIds, len(X), ctx)
    offsets = offsets_of(counts)
    filled = np.flatnonzero(counts)
    out = np.zeros((len(counts), *X.shape[1:]), X.dtype)
    if len(filled):
        reduce = {"MAX": np.maximum, "MIN": np.minimum}.get(pooltype, np.add)
        out[filled] = reduce.reduceat(X, offsets[filled], axis=0)
    if pooltype == "MEAN":
        divisor = np.maximum(counts, 1).astype(X.dtype).reshape(-1, *[1] * (X.ndim - 1))
        out = (out / divisor).astype(X.dtype)
    return out, counts.astype(X.dtype)[:, None]


@kernel("segment_pool_grad", dtypes=FLOATS | INTEGERS | {"float16"})
def segment_pool_grad(
    X: Array, SegmentIds: Array, Out: Array, Out_grad: Array, *, pooltype: str, ctx: KernelContext
) -> Array:
    """One gather of rows."""
    ids = SegmentIds.reshape(-1)
    g = Out_grad[ids]
    if pooltype in ("MAX", "MIN"):
        return np.where(Out[ids] == X, g, 0).astype(X.dtype)
    if pooltype == "MEAN":
        counts = _counts(SegmentIds, len(X), ctx)
        g = (g / counts[ids].reshape(-1, *[1] * (X.ndim - 1)).astype(X.dtype)).astype(X.dtype)
    return g


def _counts(SegmentIds: Array, rows: int, ctx: KernelContext) -> Array:
    """Rows of each segment."""
    ids = SegmentIds.reshape(-1)
    if len(ids) != rows or (len(ids) and ids[0] < 0) or (np.diff(ids) < 0).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: SegmentIds has shape {list(SegmentIds.shape)}; expected {rows} ids, one for each row "
            "of X, that start at 0 or above and never decrease"
        )
    return np.bincount(ids)


# sequence_pool --------------------------------------------------------------------------------------------------------
@kernel("sequence_pool", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_pool(
    X: Array, *, pooltype: str, pad_value: float, is_test: bool, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | LoDTensor | None]:
    """One pass over the rows; MAX with its index walks over time steps."""
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    index = None
    if pooltype in ("FIRST", "LAST"):
        out = xp.empty((len(lengths), *X.shape[1:]), X.dtype)
        filled = np.flatnonzero(lengths)
        rows = offsets[filled] if pooltype == "FIRST" else offsets[filled + 1] - 1
        out[xp.asarray(filled)] = X[xp.asarray(rows)]
    elif pooltype == "MAX":
        out, index = _max(X, offsets, xp)
    else:
        out = segment_sum(X, offsets, xp)
        if pooltype != "SUM":
            out *= _weights(lengths, pooltype, X, xp)
    if not lengths.all():
        out[xp.asarray(lengths == 0)] = pad_value
    if is_test:
        index = None
    lod = ctx.lod("X")[:-1]
    return {"Out": with_lod(out, lod), "MaxIndex": index}


@kernel("sequence_pool_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_pool_grad(
    Out_grad: Array, MaxIndex: RequiredArray = None, *, pooltype: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """Spreads each row of the gradient over its sequence."""
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    if pooltype in ("SUM", "AVERAGE", "SQRT"):
        g = Out_grad if pooltype == "SUM" else Out_grad * _weights(lengths, pooltype, Out_grad, xp)
        return g[xp.asarray(segment_ids(offsets))]
    x_grad = xp.zeros((int(offsets[-1]), *Out_grad.shape[1:]), Out_grad.dtype)
    filled = np.flatnonzero(lengths)
    g = Out_grad[xp.asarray(filled)]
    if pooltype == "MAX":
        width = int(np.prod(g.shape[1:]))
        rows = MaxIndex[xp.asarray(filled)].reshape(-1, width)
        x_grad.reshape(len(x_grad), width)[rows, xp.arange(width)] = g.reshape(-1, width)
    else:
        x_grad[xp.asarray(offsets[filled] if pooltype == "FIRST" else offsets[filled + 1] - 1)] = g
    return x_grad


def _weights(lengths: np.ndarray, pooltype: str, like: Array, xp: ArrayModule) -> Array:
    """1/n or 1/sqrt(n) of each sequence, shaped to multiply its row; 1 for an empty one."""
    n = np.maximum(lengths, 1).astype(like.dtype)
    weights = 1 / (n if pooltype == "AVERAGE" else np.sqrt(n))
    return xp.asarray(weights.reshape(-1, *[1] * (like.ndim - 1)))


def _max(x: Array, offsets: np.ndarray, xp: ArrayModule) -> tuple[Any, Any]:
    """Largest element of each sequence and column, and its row (the first of equals; -1 for an empty sequence)."""
    packing = Packing(offsets)
    best = xp.zeros((len(offsets) - 1, *x.shape[1:]), x.dtype)
    index = xp.full(best.shape, -1, xp.int32)
    column = (-1, *[1] * (x.ndim - 1))
    for step, (start, end) in enumerate(packing.steps):
        n = end - start
        rows = xp.asarray(packing.rows[start:end])
        candidate = x[rows]
        rows = rows.astype(xp.int32).reshape(column)
        if step == 0:
            best[:n], index[:n] = candidate, rows
        else:
            better = candidate > best[:n]
            best[:n] = xp.where(better, candidate, best[:n])
            index[:n] = xp.where(better, rows, index[:n])
    out, place = xp.empty_like(best), xp.asarray(packing.order)
    out[place] = best
    out_index = xp.empty_like(index)
    out_index[place] = index
    return out, out_index


# sequence_topk_avg_pooling --------------------------------------------------------------------------------------------
def _images(ctx: KernelContext) -> Iterator[tuple[int, int, int, int]]:
    """(where it begins in X, its first row, rows, columns) of each image."""
    offsets, first = sequence_offsets(ctx, "X"), sequence_offsets(ctx, "ROW")
    rows, columns = np.diff(first), np.diff(sequence_offsets(ctx, "COLUMN"))
    channels = ctx.attrs["channel_num"]
    if not len(rows) == len(columns) == len(offsets) - 1 or (channels * rows * columns != np.diff(offsets)).any():
        raise InvalidLoDError(
            f"op {ctx.op_type}: X has images of {np.diff(offsets).tolist()} elements, ROW {rows.tolist()} rows and "
            f"COLUMN {columns.tolist()} columns; expected {channels} channels times rows times columns for each"
        )
    yield from zip(offsets[:-1].tolist(), first[:-1].tolist(), rows.tolist(), columns.tolist(), strict=True)


@kernel("sequence_topk_avg_pooling", dtypes=FLOATS)
def sequence_topk_avg_pooling(
    X: Array, ROW: ShapeOnly, COLUMN: ShapeOnly, *, topks: list[int], channel_num: int, ctx: KernelContext
) -> tuple[Array, Array]:
    """All rows and channels of an image at once."""
    flat, most = X.reshape(-1), topks[-1]
    sums = np.zeros((ROW.shape[0], channel_num, most), X.dtype)
    pos = []
    for at, first, h, w in _images(ctx):
        image = flat[at : at + channel_num * h * w].reshape(channel_num, h, w)
        found = np.argsort(-image, axis=2, kind="stable")[:, :, :most]
        values = np.zeros((channel_num, h, most), X.dtype)
        values[:, :, : found.shape[2]] = np.take_along_axis(image, found, axis=2)
        sums[first : first + h] = values.cumsum(axis=2).transpose(1, 0, 2)
        places = np.full((channel_num, h, most), -1, np.int32)
        places[:, :, : found.shape[2]] = found
        pos.append(places.reshape(-1))
    means = sums[:, :, np.array(topks) - 1] / np.array(topks, X.dtype)
    return means.reshape(ROW.shape[0], -1), np.concatenate(pos) if pos else np.zeros(0, np.int32)


@kernel("sequence_topk_avg_pooling_grad", dtypes=FLOATS)
def sequence_topk_avg_pooling_grad(
    X: ShapeOnly,
    ROW: ShapeOnly,
    COLUMN: ShapeOnly,
    pos: Array,
    Out_grad: Array,
    *,
    topks: list[int],
    channel_num: int,
    ctx: KernelContext,
) -> Array:
    """What the k-th greatest element gets is the sum over the means that it is in."""
    most, out = topks[-1], np.zeros(int(np.prod(X.shape)), Out_grad.dtype)
    shares = Out_grad.reshape(ROW.shape[0], channel_num, len(topks)) / np.array(topks, Out_grad.dtype)
    member = (np.arange(most) < np.array(topks)[:, None]).astype(Out_grad.dtype)
    of_place = shares @ member
    done = 0
    for at, first, h, w in _images(ctx):
        size = channel_num * h * most
        column = pos[done : done + size].reshape(channel_num, h, most)
        done += size
        place = at + (np.arange(channel_num)[:, None] * h + np.arange(h))[:, :, None] * w + column
        found = column >= 0
        out[place[found]] += of_place[first : first + h].transpose(1, 0, 2)[found]
    return out.reshape(X.shape)
