"""Kernels of edit_distance."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel

from oprack_sequence.kernels._lod import padded_rows, sequence_offsets


@kernel("edit_distance", dtypes={"int32", "int64"})
def edit_distance(
    Hyps: Array,
    Refs: Array,
    HypsLength: Array | None = None,
    RefsLength: Array | None = None,
    *,
    normalized: bool,
    ctx: KernelContext,
) -> tuple[Array, Array]:
    """Rows of the distance table for all pairs at once; within a row, insertions are a running minimum."""
    hyps, m = _padded(Hyps, HypsLength, "Hyps", ctx)
    refs, n = _padded(Refs, RefsLength, "Refs", ctx)
    if len(m) != len(n):
        raise InvalidArgumentError(f"op {ctx.op_type}: Hyps has {len(m)} sequences and Refs {len(n)}; expected as many")
    if normalized and not n.all():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: reference {int(np.flatnonzero(n == 0)[0])} is empty; a normalized distance needs "
            "references of at least one token (or set normalized to False)"
        )
    column = np.arange(refs.shape[1] + 1)
    row = np.tile(column, (len(m), 1))
    for i in range(hyps.shape[1]):
        new = np.empty_like(row)
        new[:, 0] = i + 1
        substituted = row[:, :-1] + (refs != hyps[:, i, None])
        new[:, 1:] = np.minimum(row[:, 1:] + 1, substituted)
        new = np.minimum.accumulate(new - column, axis=1) + column
        row = np.where((i < m)[:, None], new, row)
    distance = row[np.arange(len(m)), n].astype(np.float32)
    if normalized:
        distance /= n
    return np.array([len(m)], np.int64), distance[:, None]


def _padded(tokens: Array, length: Array | None, slot: str, ctx: KernelContext) -> tuple[Array, Array]:
    """(tokens [pairs, longest], lengths)."""
    if length is not None:
        lengths = length.reshape(-1).astype(np.int64)
        tokens = tokens.reshape(tokens.shape[:2])
        if (lengths < 0).any() or (lengths > tokens.shape[1]).any():
            raise InvalidArgumentError(
                f"op {ctx.op_type}: {slot}Length is {lengths.tolist()}; expected from 0 to {tokens.shape[1]}, "
                f"the width of {slot}"
            )
        return tokens, lengths
    offsets = sequence_offsets(ctx, slot)
    lengths = np.diff(offsets)
    rows, _ = padded_rows(offsets, int(lengths.max(initial=0)))
    flat = tokens.reshape(-1)
    return (flat[rows] if len(flat) else rows.astype(flat.dtype)), lengths
