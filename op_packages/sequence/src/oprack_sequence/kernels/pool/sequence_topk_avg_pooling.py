"""Kernels of sequence_topk_avg_pooling and of its gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import sequence_offsets


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
