"""Kernels of sequence_pad."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import positions, segment_ids, sequence_offsets


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
