"""Windows over the rows of a sequence, and rows out of the windows of an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import host, offsets_of, positions, segment_ids, sequence_offsets, with_lod


# im2sequence ----------------------------------------------------------------------------------------------------------
@kernel("im2sequence", place=("cpu", "cuda"), dtypes=FLOATS)
def im2sequence(
    X: Array,
    Y: Array | None = None,
    *,
    kernels: list[int],
    strides: list[int],
    paddings: list[int],
    out_stride: list[int],
    xp: ArrayModule,
) -> LoDTensor:
    """One gather of pixels; those outside an image read zeros that X is surrounded with."""
    sizes = None
    if Y is not None and len(X) > 1:  # Paddle looks at Y from two images on
        sizes = -(-host(Y).astype(np.int64).reshape(-1, 2) // np.asarray(out_stride))
    places, margin, offsets = _places(X.shape, sizes, kernels, strides, paddings)
    padded = xp.pad(X, ((0, 0), (0, 0), *margin))
    image, channel, row, column = (xp.asarray(p) for p in places)
    return with_lod(
        padded[image, channel, row, column].reshape(offsets[-1], X.shape[1] * kernels[0] * kernels[1]), [offsets]
    )


@kernel("im2sequence_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def im2sequence_grad(
    X: Array, Out_grad: Array, *, kernels: list[int], strides: list[int], paddings: list[int], xp: ArrayModule
) -> Array:
    """The transposed gather: an addition at each pixel read."""
    places, margin, offsets = _places(X.shape, None, kernels, strides, paddings)
    (up, down), (left, right) = margin
    height, width = X.shape[2:]
    padded = xp.zeros((*X.shape[:2], height + up + down, width + left + right), Out_grad.dtype)
    windows = Out_grad.reshape(offsets[-1], X.shape[1], *kernels)
    xp.add.at(padded, tuple(xp.asarray(p) for p in places), windows)
    return xp.ascontiguousarray(padded[:, :, up : up + height, left : left + width])


def _places(
    shape: tuple[int, ...], sizes: Array | None, kernels: Sequence[int], strides: Sequence[int], paddings: Sequence[int]
) -> tuple[tuple[Array, ...], list[tuple[int, int]], Array]:
    """(image, channel, row and column of each element [windows, C, kh, kw]; margins of zeros; windows of each image).

    sizes: rows and columns of each image that count, or None for all of X.
    """
    batch, channels, *whole = shape
    if sizes is None:
        sizes = np.tile(whole, (batch, 1))
    counts = _window_counts(sizes, kernels, strides, paddings)
    offsets = offsets_of(counts.prod(axis=1))
    image, k = segment_ids(offsets), positions(offsets)
    across = counts[image, 1]
    starts = np.stack([k // across, k % across], axis=1) * strides - paddings[:2]
    margin = [
        (max(0, -int(starts[:, a].min(initial=0))), max(0, int(starts[:, a].max(initial=0)) + kernels[a] - whole[a]))
        for a in range(2)
    ]
    rows = starts[:, 0, None] + margin[0][0] + np.arange(kernels[0])
    columns = starts[:, 1, None] + margin[1][0] + np.arange(kernels[1])
    channel = np.arange(channels)[:, None, None]
    return (image[:, None, None, None], channel, rows[:, None, :, None], columns[:, None, None, :]), margin, offsets


def _window_counts(sizes: Array, kernels: Sequence[int], strides: Sequence[int], paddings: Sequence[int]) -> Array:
    """[B, 2]: windows down and across each image."""
    pads = np.asarray(paddings)
    return np.maximum((sizes + pads[:2] + pads[2:] - kernels) // strides + 1, 0)


# row_conv -------------------------------------------------------------------------------------------------------------
@kernel("row_conv", place=("cpu", "cuda"), dtypes=FLOATS)
def row_conv(X: Array, Filter: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One shifted product for each tap."""
    x, left = _rows(X, ctx)
    out = x * Filter[0]
    for k in range(1, min(len(Filter), len(x))):
        out[:-k] += xp.where(xp.asarray(left[:-k] > k)[:, None], x[k:], 0) * Filter[k]
    return out.reshape(X.shape)


@kernel("row_conv_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def row_conv_grad(X: Array, Filter: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array]:
    """The transposed shifts for X, one sum over rows for each tap of Filter."""
    x, left = _rows(X, ctx)
    g = Out_grad.reshape(x.shape)
    x_grad = g * Filter[0]
    filter_grad = xp.zeros_like(Filter)
    filter_grad[0] = (x * g).sum(axis=0)
    for k in range(1, min(len(Filter), len(x))):
        inside = xp.where(xp.asarray(left[:-k] > k)[:, None], g[:-k], 0)
        x_grad[k:] += inside * Filter[k]
        filter_grad[k] = (x[k:] * inside).sum(axis=0)
    return {"X@GRAD": x_grad.reshape(X.shape), "Filter@GRAD": filter_grad}


def _rows(X: Array, ctx: KernelContext) -> tuple[Array, Array]:
    """(X as rows, how many rows of its sequence are left at each row, itself included)."""
    if X.ndim == 3:
        batch, steps, width = X.shape
        return X.reshape(-1, width), np.tile(np.arange(steps, 0, -1), batch)
    offsets = sequence_offsets(ctx, "X")
    return X, offsets[1:][segment_ids(offsets)] - np.arange(offsets[-1])


# var_conv_2d ----------------------------------------------------------------------------------------------------------
def _images(ctx: KernelContext) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """(where it begins in X, [channels, rows, columns]) of each image."""
    offsets = sequence_offsets(ctx, "X")
    rows, columns = (np.diff(sequence_offsets(ctx, slot)) for slot in ("ROW", "COLUMN"))
    channels = ctx.attrs["InputChannel"]
    if not len(rows) == len(columns) == len(offsets) - 1 or (channels * rows * columns != np.diff(offsets)).any():
        raise InvalidLoDError(
            f"op {ctx.op_type}: X has images of {np.diff(offsets).tolist()} elements, ROW {rows.tolist()} rows and "
            f"COLUMN {columns.tolist()} columns; expected {channels} channels times rows times columns for each"
        )
    for at, h, w in zip(offsets, rows, columns, strict=False):
        yield int(at), (channels, int(h), int(w))


def _windows(shape: tuple[int, int, int], ctx: KernelContext) -> tuple[np.ndarray, np.ndarray]:
    """(element of the image, whether there is one), [channels x KernelH x KernelW, places]."""
    c, h, w = shape
    kh, kw, sh, sw = (ctx.attrs[n] for n in ("KernelH", "KernelW", "StrideH", "StrideW"))
    y = np.arange(kh)[:, None] - kh // 2 + np.arange(0, h, sh)
    x = np.arange(kw)[:, None] - kw // 2 + np.arange(0, w, sw)
    y, x = y[None, :, None, :, None], x[None, None, :, None, :]
    inside = (y >= 0) & (y < h) & (x >= 0) & (x < w) & np.ones((c, 1, 1, 1, 1), bool)
    place = (np.arange(c)[:, None, None, None, None] * h + y) * w + x
    return np.where(inside, place, 0).reshape(c * kh * kw, -1), inside.reshape(c * kh * kw, -1)


@kernel("var_conv_2d", dtypes=FLOATS)
def var_conv_2d(X: Array, ROW: Array, COLUMN: Array, W: Array, *, ctx: KernelContext) -> tuple[LoDTensor, LoDTensor]:
    """One gather and one product for each image."""
    flat, outs, cols = X.reshape(-1), [], []
    for at, shape in _images(ctx):
        place, inside = _windows(shape, ctx)
        col = flat[at + place] * inside if place.size else np.zeros(place.shape, X.dtype)
        outs.append((W @ col).reshape(-1))
        cols.append(col.reshape(-1))
    return _joined(outs, X.dtype), _joined(cols, X.dtype)


def _joined(parts: list[Array], dtype: np.dtype) -> LoDTensor:
    flat = np.concatenate(parts) if parts else np.zeros(0, dtype)
    return with_lod(flat[:, None], [offsets_of(np.array([p.size for p in parts], np.int64))])


@kernel("var_conv_2d_grad", dtypes=FLOATS)
def var_conv_2d_grad(X: Array, W: Array, Col: Array, Out_grad: Array, *, ctx: KernelContext) -> tuple[Array, Array]:
    """The two products of each image, and a sum of its windows."""
    of_x, of_w, at_col, at_out = np.zeros(len(X), X.dtype), np.zeros_like(W), 0, 0
    col, grad = Col.reshape(-1), Out_grad.reshape(-1)
    for at, shape in _images(ctx):
        place, inside = _windows(shape, ctx)
        g = grad[at_out : at_out + len(W) * place.shape[1]].reshape(len(W), -1)
        of_w += g @ col[at_col : at_col + place.size].reshape(place.shape).T
        np.add.at(of_x, at + place[inside], (W.T @ g)[inside])
        at_col, at_out = at_col + place.size, at_out + g.size
    return of_x.reshape(X.shape), of_w
