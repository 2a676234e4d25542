"""Kernels of filter_by_instag and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly

from oprack_sequence.kernels._lod import offsets_of, row_ranges, segment_ids, sequence_offsets, with_lod


@kernel("filter_by_instag")
def filter_by_instag(
    Ins: Array, Ins_tag: Array, Filter_tag: Array, *, is_lod: bool, out_val_if_empty: int, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor, LoDTensor]:
    """One mask over all tags, and one gather."""
    offsets = sequence_offsets(ctx, "Ins") if is_lod else np.arange(len(Ins) + 1)
    tags = sequence_offsets(ctx, "Ins_tag")
    if len(tags) != len(offsets):
        raise InvalidLoDError(
            f"op {ctx.op_type}: Ins has {len(offsets) - 1} instances and Ins_tag {len(tags) - 1}; expected as many"
        )
    wanted = np.isin(Ins_tag.reshape(-1), Filter_tag.reshape(-1))
    kept = np.flatnonzero(np.bincount(segment_ids(tags)[wanted], minlength=len(offsets) - 1))
    if not len(kept):
        empty = np.full((1, Ins.shape[1]), out_val_if_empty, Ins.dtype)
        one = np.array([[0, 1, 1]])
        return with_lod(empty, [[0, 1]]), with_lod(np.zeros((1, 1), np.float32), [[0, 1]]), with_lod(one, [[0, 1]])
    lengths = np.diff(offsets)[kept]
    out = offsets_of(lengths)
    table = np.stack([out[:-1], offsets[kept], lengths], axis=1)
    level = list(range(len(kept) + 1))
    rows = Ins[row_ranges(offsets[kept], lengths)]
    return with_lod(rows, [out]), with_lod(np.ones((len(kept), 1), np.float32), [level]), with_lod(table, [level])


@kernel("filter_by_instag_grad")
def filter_by_instag_grad(IndexMap: Array, LossWeight: Array, Ins: ShapeOnly, Out_grad: Array) -> Array:
    """Rows back where they came from."""
    grad = np.zeros(Ins.shape, Out_grad.dtype)
    if LossWeight.any():
        grad[row_ranges(IndexMap[:, 1], IndexMap[:, 2])] = Out_grad
    return grad
