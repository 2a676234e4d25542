"""Sequences as a padded batch, and back."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly, numpy_dtype
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_sequence.kernels._lod import host, offsets_of, positions, segment_ids, sequence_offsets, with_lod
from oprack_sequence.ops.pad import LEAVE_OUT


# sequence_mask --------------------------------------------------------------------------------------------------------
@kernel("sequence_mask", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_mask(
    X: Array, MaxLenTensor: Array | None = None, *, maxlen: int, out_dtype: int, xp: ArrayModule
) -> Array:
    """A comparison with 0, 1, 2 ...; the size of the result is read from X when maxlen is -1."""
    if MaxLenTensor is not None:
        maxlen = int(MaxLenTensor.reshape(-1)[0])
    elif maxlen < 0:
        maxlen = max(int(X.max()), 0) if X.size else 0
    return (xp.arange(maxlen) < X[..., None]).astype(numpy_dtype(out_dtype))


# sequence_pad ---------------------------------------------------------------------------------------------------------
@kernel("sequence_pad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_pad(
    X: Array, PadValue: Array, *, padded_length: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """One scatter of rows into the padding."""
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    longest = int(lengths.max()) if len(lengths) else 0
    if padded_length == -1:
        padded_length = longest
    step = X.shape[1:]
    if PadValue.size != 1 and tuple(PadValue.shape) != tuple(step):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: PadValue has shape {list(PadValue.shape)}; expected one element or a row's {list(step)}"
        )
    out = xp.empty((len(lengths), padded_length, *step), X.dtype)
    out[...] = PadValue.reshape(()) if PadValue.size == 1 else PadValue
    out[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))] = X
    return out, xp.asarray(lengths)


@kernel("sequence_pad_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_pad_grad(Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of rows."""
    offsets = sequence_offsets(ctx, "X")
    return Out_grad[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))]


# sequence_unpad -------------------------------------------------------------------------------------------------------
@kernel("sequence_unpad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_unpad(X: Array, Length: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    lengths = host(Length).reshape(-1).astype(np.int64)
    batch, longest = X.shape[:2]
    if len(lengths) != batch or (lengths < 0).any() or (lengths > longest).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Length is {lengths.tolist()}; expected {batch} lengths from 0 to {longest}, "
            f"since X has shape {list(X.shape)}"
        )
    offsets = offsets_of(lengths)
    out = X[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))]
    if out.ndim == 1:
        out = out.reshape(-1, 1)
    return with_lod(out, [offsets])


@kernel("sequence_unpad_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_unpad_grad(X: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One scatter of rows into zeros."""
    offsets = sequence_offsets(ctx, "Out@GRAD")
    x_grad = xp.zeros(X.shape, Out_grad.dtype)
    rows = Out_grad if X.ndim > 2 else Out_grad.reshape(-1)
    x_grad[xp.asarray(segment_ids(offsets)), xp.asarray(positions(offsets))] = rows
    return x_grad


# unpad_by_mask --------------------------------------------------------------------------------------------------------
_ANY = FLOATS | HALF_FLOATS | INTEGERS | BOOL


@kernel("unpad_by_mask", place=("cpu", "cuda"), dtypes=_ANY)
def unpad_by_mask(
    X: Array,
    Mask: Array,
    *,
    strict: bool,
    contiguous: bool,
    reach: int,
    start_index: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[LoDTensor, LoDTensor]:
    """One gather of rows."""
    mask = host(Mask)
    kept = mask != 0
    if strict and not ((mask == 1) | ~kept).all():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Mask holds {mask[kept & (mask != 1)][0]}; expected 0 for padding and 1 for the rest. "
            + LEAVE_OUT
        )
    if contiguous and ((kept[:, 1:] & ~kept[:, :-1]).sum(axis=1) + kept[:, :1].sum(axis=1) > 1).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Mask has padding between places that are kept; expected those of a sequence side by "
            "side, where distances between them count. " + LEAVE_OUT
        )
    if reach:
        kept = _widened(kept, reach)
    index = np.flatnonzero(kept)
    places = xp.asarray(index)
    rows = X.reshape(-1, *X.shape[2:])[places] if X.size else xp.zeros((len(index), *X.shape[2:]), X.dtype)
    offsets = offsets_of(np.count_nonzero(kept, axis=1))
    return with_lod(rows, [offsets]), with_lod(places + start_index * kept.shape[1], [offsets])


def _widened(kept: np.ndarray, reach: int) -> np.ndarray:
    """Whether a place [B, T] or one at most so far from it is kept."""
    before, t = np.zeros((len(kept), kept.shape[1] + 1), np.int64), np.arange(kept.shape[1])
    np.cumsum(kept, axis=1, out=before[:, 1:])
    return before[:, np.minimum(t + reach + 1, len(t))] > before[:, np.maximum(t - reach, 0)]


# pad_by_index ---------------------------------------------------------------------------------------------------------
@kernel("pad_by_index", place=("cpu", "cuda"), dtypes=_ANY)
def pad_by_index(
    X: Array, Index: Array, Like: ShapeOnly, *, start_index: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """One scatter of rows into zeros."""
    batch, length = Like.shape[:2]
    first = start_index * length
    index, inner = host(Index) - first, X.shape[1:]
    if len(index) and not (0 <= index.min() and index.max() < batch * length):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Index has places from {index.min() + first} to {index.max() + first}; expected {first} "
            f"to {first + batch * length - 1}, as Like has shape {list(Like.shape)}"
        )
    out = xp.zeros((batch * length, *inner), X.dtype)
    out[xp.asarray(index)] = X
    return out.reshape(batch, length, *inner)


@kernel("pad_by_index_grad", place=("cpu", "cuda"), dtypes=_ANY)
def pad_by_index_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, start_index: int) -> Array:
    """One gather of rows; of an empty array no reshape tells how many there are."""
    places = Index - start_index * Out_grad.shape[1]
    return Out_grad.reshape(-1, *X.shape[1:])[places] if Out_grad.size else Out_grad.reshape(X.shape)
