"""Rows and sequences repeated for another LoD."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import (
    offsets_of,
    row_ranges,
    segment_ids,
    segment_sum,
    sequence_offsets,
    sum_by_index,
    with_lod,
)


# sequence_expand ------------------------------------------------------------------------------------------------------
@kernel("sequence_expand", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_expand(X: Array, *, ref_level: int, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    repeats = _repeats(ctx, ref_level)
    if not len(repeats):
        return with_lod(X.copy(), ctx.lod("X"))
    starts, lengths = _blocks(ctx, X.shape[0], repeats)
    out = X[xp.asarray(row_ranges(starts, lengths))]
    lod = [offsets_of(lengths).tolist()] if ctx.lod("X") else []
    return with_lod(out, lod)


@kernel("sequence_expand_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_expand_grad(Out_grad: Array, *, ref_level: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Sums the gradients of all repeats of a row."""
    repeats = _repeats(ctx, ref_level)
    if not len(repeats):
        return Out_grad.copy()
    lod = ctx.lod("X")
    rows = lod[-1][-1] if lod else len(repeats)
    starts, lengths = _blocks(ctx, rows, repeats)
    return sum_by_index(Out_grad, row_ranges(starts, lengths), rows, xp)


def _repeats(ctx: KernelContext, ref_level: int) -> Array:
    """How often each sequence of X is repeated: lengths of Y's sequences at ref_level."""
    lod = ctx.lod("Y")
    if not lod:
        raise InvalidLoDError(f"op {ctx.op_type}: Y has no LoD; expected one, to repeat by its lengths")
    if not -1 <= ref_level < len(lod):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: attribute ref_level is {ref_level}, but the LoD of Y has {len(lod)} levels; "
            f"expected -1 to {len(lod) - 1}"
        )
    return np.diff(np.asarray(lod[ref_level], np.int64))


def _blocks(ctx: KernelContext, rows: int, repeats: Array) -> tuple[Array, Array]:
    """First row and number of rows of every block of Out, in order."""
    lod = ctx.lod("X")
    if len(lod) > 1:
        raise InvalidLoDError(f"op {ctx.op_type}: X has {len(lod)} LoD levels; expected at most one")
    offsets = np.asarray(lod[0], np.int64) if lod else np.arange(rows + 1)
    if len(offsets) - 1 != len(repeats):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: X has {len(offsets) - 1} {'sequences' if lod else 'rows'}, but the level of Y has "
            f"{len(repeats)}; expected as many"
        )
    sequence = np.repeat(np.arange(len(repeats)), repeats)
    return offsets[sequence], np.diff(offsets)[sequence]


# sequence_expand_as ---------------------------------------------------------------------------------------------------
@kernel("sequence_expand_as", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_expand_as(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of rows."""
    return X[xp.asarray(segment_ids(_offsets(X, ctx)))]


@kernel("sequence_expand_as_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_expand_as_grad(X: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Sum over each sequence."""
    return segment_sum(Out_grad, _offsets(X, ctx), xp)


def _offsets(X: Array | ShapeOnly, ctx: KernelContext) -> np.ndarray:
    """Offsets of the sequences of Y, of which there is one for each row of X."""
    offsets = sequence_offsets(ctx, "Y")
    if len(offsets) - 1 != X.shape[0]:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: X has {X.shape[0]} rows, but Y has {len(offsets) - 1} sequences; expected as many"
        )
    return offsets
