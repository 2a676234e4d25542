"""Kernels of sequence_concat."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import offsets_of, row_ranges, sequence_offsets, with_lod


@kernel("sequence_concat", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_concat(X: list[Array], *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather from the inputs laid end to end."""
    rows, lengths = _rows(ctx)
    out = xp.concatenate(X, axis=0)[xp.asarray(rows)]
    return with_lod(out, [*ctx.lod("X")[:-1], offsets_of(lengths.sum(axis=1))])


@kernel("sequence_concat_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_concat_grad(Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, list[Array]]:
    """The inverse scatter, cut into the inputs."""
    rows, lengths = _rows(ctx)
    all_rows = xp.empty_like(Out_grad)
    all_rows[xp.asarray(rows)] = Out_grad
    ends = np.cumsum(lengths.sum(axis=0)).tolist()
    starts = [0, *ends[:-1]]
    return {"X@GRAD": [all_rows[a:b].copy() for a, b in zip(starts, ends, strict=True)]}


def _rows(ctx: KernelContext) -> tuple[Array, Array]:
    """(row of the inputs laid end to end, for each row of Out; lengths [sequences, inputs])."""
    offsets = [sequence_offsets(ctx, "X", i) for i in range(ctx.input_count("X"))]
    counts = [len(o) - 1 for o in offsets]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: the inputs have {counts} sequences; expected as many in each of them"
        )
    lengths = np.stack([np.diff(o) for o in offsets], axis=1)
    first = offsets_of(lengths.sum(axis=0))[:-1]  # of each input among all rows
    starts = np.stack([o[:-1] for o in offsets], axis=1) + first
    return row_ranges(starts.reshape(-1), lengths.reshape(-1)), lengths
