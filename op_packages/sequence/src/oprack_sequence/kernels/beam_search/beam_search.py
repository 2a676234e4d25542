"""Kernels of beam_search."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import absolute_offsets, offsets_of, positions, segment_ids, with_lod


@kernel("beam_search", dtypes=FLOATS)
def beam_search(
    pre_ids: Array,
    pre_scores: Array,
    scores: Array,
    ids: Array | None = None,
    *,
    level: int,
    beam_size: int,
    end_id: int,
    is_accumulated: bool,
    ctx: KernelContext,
) -> tuple[LoDTensor, LoDTensor, Array]:
    """One sort of all candidates of all sources."""
    sources = _source_offsets(ctx, level)
    prefix, column = _candidates(pre_ids.reshape(-1) == end_id, scores.shape[1])
    source = np.searchsorted(sources, prefix, side="right") - 1
    ended = pre_ids.reshape(-1)[prefix] == end_id
    before = pre_scores.reshape(-1)[prefix]
    score = scores[prefix, column]
    if not is_accumulated:
        with np.errstate(divide="ignore"):
            score = before + np.log(score)
    score = np.where(ended, before, score).astype(scores.dtype)
    token = np.where(ended, end_id, column if ids is None else ids[prefix, column])
    # best first within a source; candidates are in the order in which Paddle offers them to the beam
    order = np.lexsort((np.arange(len(prefix)), -prefix, -score, source))
    picked = _best(order, source, score, prefix, beam_size, len(sources) - 1)
    finished = np.ones(len(sources) - 1, bool)
    finished[source[picked][~(ended & (token == end_id))[picked]]] = False
    picked = picked[~finished[source[picked]]]
    picked = picked[np.argsort(prefix[picked], kind="stable")]
    lod = [sources, offsets_of(np.bincount(prefix[picked], minlength=len(scores)))]
    return (
        with_lod(token[picked].astype(np.int64)[:, None], lod),
        with_lod(score[picked][:, None], lod),
        prefix[picked].astype(np.int32),
    )


def _source_offsets(ctx: KernelContext, level: int) -> Array:
    """Rows at which each source begins."""
    lod = ctx.lod("scores")
    if not 0 <= level < len(lod):
        raise InvalidLoDError(
            f"op {ctx.op_type}: attribute level is {level}, but scores has {len(lod)} LoD levels; "
            "expected two levels, sources and prefixes"
        )
    return absolute_offsets(lod, level)


def _candidates(ended: Array, width: int) -> tuple[Array, Array]:
    """(prefix, column) of every candidate: all columns, or only the first of a prefix that has ended."""
    offsets = offsets_of(np.where(ended, min(width, 1), width))
    return segment_ids(offsets), positions(offsets)


def _best(order: Array, source: Array, score: Array, prefix: Array, beam_size: int, n: int) -> Array:
    """Candidates of the beams, best first, source by source. order: candidates sorted so."""
    starts = offsets_of(np.bincount(source, minlength=n))
    rank = positions(starts)
    picked = order[rank < beam_size].copy()
    # Paddle lets a candidate that equals the last of a full beam take its place: of equals (same prefix and score)
    # that do not all fit, the one that was offered last stays, if all better ones had been offered before
    sizes = np.minimum(np.diff(starts), beam_size)
    ends = offsets_of(sizes)
    same = (score[order][1:] == score[order][:-1]) & (prefix[order][1:] == prefix[order][:-1])
    group = np.concatenate([[0], np.cumsum(~same)]) if len(order) else np.zeros(0, np.int64)
    full = np.flatnonzero(np.diff(starts) > beam_size)
    last = starts[full] + beam_size - 1
    group_end = np.searchsorted(group, group[last], side="right") - 1
    group_start = np.searchsorted(group, group[last], side="left")
    latest_better = np.full(len(full), -1)
    some = np.flatnonzero(group_start > starts[full])
    if len(some):
        bounds = np.stack([starts[full][some], group_start[some]], axis=1).reshape(-1)
        latest_better[some] = np.maximum.reduceat(np.append(order, -1), bounds)[::2]
    takes = (group_end > last) & (order[group_end] > latest_better)
    picked[ends[full + 1][takes] - 1] = order[group_end[takes]]
    return picked
