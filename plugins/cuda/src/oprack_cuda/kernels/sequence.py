"""Ops on sequences of rows, one launch each; only the offsets are copied from the host."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.tensor import LoDTensor
from oprack.types import FLOATS
from oprack_sequence.kernels import expand as plain_expand
from oprack_sequence.kernels import pad as plain_pad
from oprack_sequence.kernels import rows as plain_rows
from oprack_sequence.kernels._lod import host, offsets_of, sequence_offsets, with_lod

from oprack_cuda.kernels._launch import F64, I32, I64, cuda_kernel, dense, launch, launch_rows

_MODES = {name: I32(i) for i, name in enumerate(("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"))}


def _width(shape: tuple[int, ...]) -> int:
    return math.prod(shape[1:])


@cuda_kernel("sequence_pool", FLOATS)
def sequence_pool(
    X: Array, *, pooltype: str, pad_value: float, is_test: bool, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | LoDTensor | None]:
    offsets, x = sequence_offsets(ctx, "X"), dense(xp, X)
    count, width = len(offsets) - 1, _width(x.shape)
    out, index = xp.empty((count, *x.shape[1:]), x.dtype), None
    if pooltype == "MAX" and not is_test:
        index = xp.empty(out.shape, xp.int32)
    numbers = I64(count), I64(width), _MODES[pooltype], F64(pad_value)
    given = x, xp.asarray(offsets), out, index
    launch(xp, "sequence.cu", "sequence_pool", x.dtype, out.size, *given, *numbers)
    return {"Out": with_lod(out, ctx.lod("X")[:-1]), "MaxIndex": index}


@cuda_kernel("sequence_pool_grad", FLOATS)
def sequence_pool_grad(
    Out_grad: Array, MaxIndex: Array | None = None, *, pooltype: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    offsets, dy = sequence_offsets(ctx, "X"), dense(xp, Out_grad)
    dx = xp.empty((int(offsets[-1]), *dy.shape[1:]), dy.dtype)
    numbers = I64(len(offsets) - 1), I64(_width(dy.shape)), _MODES[pooltype]
    given = dy, xp.asarray(offsets), dense(xp, MaxIndex, "int32"), dx
    launch(xp, "sequence.cu", "sequence_pool_grad", dy.dtype, dy.size, *given, *numbers)
    return dx


@cuda_kernel("sequence_pad", FLOATS)
def sequence_pad(
    X: Array, PadValue: Array, *, padded_length: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    longest, width = int(lengths.max(initial=0)), _width(X.shape)
    padded_length = longest if padded_length == -1 else padded_length
    if padded_length < longest or PadValue.size not in (1, width):  # that source says what is wrong
        return plain_pad.sequence_pad(X, PadValue, padded_length=padded_length, ctx=ctx, xp=xp)
    out = xp.empty((len(lengths), padded_length, *X.shape[1:]), X.dtype)
    given = dense(xp, X), xp.asarray(offsets), dense(xp, PadValue), out
    numbers = I64(len(lengths)), I64(padded_length), I64(width), I64(PadValue.size)
    launch(xp, "sequence.cu", "sequence_pad", X.dtype, out.size, *given, *numbers)
    return out, xp.asarray(lengths)


def _unpad(padded: Array, offsets: Array, width: int, xp: ArrayModule) -> Array:
    """Rows [N, ...] of padded sequences [n, longest, ...]."""
    x = xp.empty((int(offsets[-1]), *padded.shape[2:]), padded.dtype)
    given = dense(xp, padded), xp.asarray(offsets), x
    numbers = I64(len(offsets) - 1), I64(padded.shape[1]), I64(width)
    launch(xp, "sequence.cu", "sequence_unpad", x.dtype, padded.size, *given, *numbers)
    return x


@cuda_kernel("sequence_pad_grad", FLOATS)
def sequence_pad_grad(Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    return _unpad(Out_grad, sequence_offsets(ctx, "X"), _width(Out_grad.shape[1:]), xp)


@cuda_kernel("sequence_unpad", FLOATS)
def sequence_unpad(X: Array, Length: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """The lengths decide the shape, so the host waits for them."""
    lengths, (batch, longest) = host(Length).reshape(-1).astype(np.int64), X.shape[:2]
    if len(lengths) != batch or (lengths < 0).any() or (lengths > longest).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Length is {lengths.tolist()}; expected {batch} lengths from 0 to {longest}, "
            f"since X has shape {list(X.shape)}"
        )
    offsets = offsets_of(lengths)
    out = _unpad(X, offsets, _width(X.shape[1:]), xp)
    return with_lod(out.reshape(-1, 1) if out.ndim == 1 else out, [offsets])


@cuda_kernel("sequence_softmax", FLOATS)
def sequence_softmax(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    if X.size != len(X):
        return plain_rows.sequence_softmax(X, ctx=ctx, xp=xp)
    offsets, x = sequence_offsets(ctx, "X"), dense(xp, X)
    y, count = xp.empty(x.shape, x.dtype), len(offsets) - 1
    longest = int(np.diff(offsets).max(initial=0))
    given = x, xp.asarray(offsets), y, I64(count)
    launch_rows(xp, "sequence.cu", "sequence_softmax", x.dtype, count, longest, *given)
    return y


@cuda_kernel("sequence_softmax_grad", FLOATS)
def sequence_softmax_grad(Out: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    if Out.size != len(Out):
        return plain_rows.sequence_softmax_grad(Out, Out_grad, ctx=ctx, xp=xp)
    offsets, y, dy = sequence_offsets(ctx, "X"), dense(xp, Out), dense(xp, Out_grad)
    dx, count = xp.empty(y.shape, y.dtype), len(offsets) - 1
    longest = int(np.diff(offsets).max(initial=0))
    given = y, dy, xp.asarray(offsets), dx, I64(count)
    launch_rows(xp, "sequence.cu", "sequence_softmax_grad", y.dtype, count, longest, *given)
    return dx


@cuda_kernel("sequence_expand", FLOATS)
def sequence_expand(X: Array, *, ref_level: int, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    repeats = plain_expand._repeats(ctx, ref_level)
    if not len(repeats):
        return with_lod(X.copy(), ctx.lod("X"))
    starts, lengths = plain_expand._blocks(ctx, X.shape[0], repeats)
    places, x = offsets_of(lengths), dense(xp, X)
    out, width = xp.empty((int(places[-1]), *x.shape[1:]), x.dtype), _width(x.shape)
    given = x, xp.asarray(starts), xp.asarray(places), out
    longest = int(lengths.max(initial=0)) * width
    numbers = I64(len(lengths)), I64(width)
    launch_rows(xp, "sequence.cu", "expand_rows", x.dtype, len(lengths), longest, *given, *numbers)
    return with_lod(out, [places.tolist()] if ctx.lod("X") else [])
