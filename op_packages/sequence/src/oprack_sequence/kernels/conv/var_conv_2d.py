"""Kernels of var_conv_2d and of its gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import offsets_of, sequence_offsets, with_lod


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
