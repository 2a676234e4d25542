"""Kernels of ctc_align."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor

from oprack_sequence.kernels._lod import absolute_offsets, positions, segment_ids, sequence_offsets, with_lod


@kernel("ctc_align", dtypes={"int32", "int64"})
def ctc_align(
    Input: Array,
    InputLength: Array | None = None,
    *,
    blank: int,
    merge_repeated: bool,
    padding_value: int,
    ctx: KernelContext,
) -> dict[str, LoDTensor | None] | tuple[Array, Array]:
    """One mask over all ids."""
    if InputLength is not None:
        lengths = InputLength.reshape(-1, 1)
        inside = np.arange(Input.shape[1]) < lengths
        kept = inside & (Input != blank)
        if merge_repeated:
            kept[:, 1:] &= Input[:, 1:] != Input[:, :-1]
        counts = kept.sum(axis=1)
        out = np.full_like(Input, padding_value)
        out[np.arange(Input.shape[1]) < counts[:, None]] = Input[kept]
        return out, counts.astype(InputLength.dtype)[:, None]
    sequence_offsets(ctx, "Input")  # an error when there is no LoD
    offsets = absolute_offsets(ctx.lod("Input"), 0)
    ids = Input.reshape(-1)
    kept = ids != blank
    if merge_repeated:
        kept[1:] &= (ids[1:] != ids[:-1]) | (positions(offsets)[1:] == 0)
    counts = np.bincount(segment_ids(offsets)[kept], minlength=len(offsets) - 1)
    out = Input[kept].reshape(-1, 1)
    if not len(out):
        out = np.full((1, 1), -1, Input.dtype)
    return {"Output": with_lod(out, [np.concatenate([[0], np.cumsum(counts)])]), "OutputLength": None}
