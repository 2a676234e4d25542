"""Search for the best sentences: one step, and the way back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.types import FLOATS, HALF_FLOATS

from oprack_sequence.kernels._lod import absolute_offsets, offsets_of, positions, row_ranges, segment_ids, with_lod


# beam_search ----------------------------------------------------------------------------------------------------------
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


# beam_search_decode ---------------------------------------------------------------------------------------------------
@kernel("beam_search_decode", dtypes=FLOATS | HALF_FLOATS | {"int32", "int64"})
def beam_search_decode(
    Ids: LoDTensorArray, Scores: LoDTensorArray, *, end_id: int, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor]:
    """Follows all sentences of all sources from the last step back, one step of time after the other."""
    if not Ids or len(Ids) != len(Scores):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids has {len(Ids)} steps and Scores {len(Scores)}; expected as many, at least one"
        )
    ids_at, scores_at = _steps(Ids, "Ids", ctx), _steps(Scores, "Scores", ctx)
    prefixes, words = zip(*(_step_offsets(t, i, ctx) for i, t in enumerate(ids_at)), strict=True)
    sources = len(prefixes[0]) - 1
    started = np.zeros(sources, bool)
    source = row = np.zeros(0, np.int64)  # of each sentence; its selected id in the step at hand
    ids, scores, kept = [], [], []  # of each step, from the last, for the sentences known by then
    for t in range(len(Ids) - 1, -1, -1):
        first, past = words[t][prefixes[t][:-1]], words[t][prefixes[t][1:]]
        begin = np.flatnonzero(~started & (past > first))
        started[begin] = True
        lengths = (past - first)[begin]
        known = len(row)
        row = np.concatenate([row, row_ranges(first[begin], lengths)])
        source = np.concatenate([source, np.repeat(begin, lengths)])
        ids.append(ids_at[t].array.reshape(-1)[row])
        scores.append(scores_at[t].array.reshape(-1)[row])
        kept.append((ids[-1] != end_id) | (np.arange(len(row)) >= known))
        row = np.searchsorted(words[t], row, side="right") - 1
    return _sentences(ids, scores, kept, source, sources)


def _steps(array: LoDTensorArray, slot: str, ctx: KernelContext) -> list[LoDTensor]:
    """The tensors of all steps. Raises InvalidArgumentError when one was never written."""
    steps = [t for t in array if t is not None]
    if len(steps) < len(array):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: step {array.index(None)} of {slot} was never written; expected a tensor for each "
            f"of its {len(array)} steps, so write them from step 0 on"
        )
    return steps


def _step_offsets(tensor: LoDTensor, i: int, ctx: KernelContext) -> list[Array]:
    """Both levels of a step's LoD."""
    if len(tensor.lod) != 2:
        raise InvalidLoDError(
            f"op {ctx.op_type}: step {i} of Ids has {len(tensor.lod)} LoD levels; expected two, sources and prefixes"
        )
    return [np.asarray(level, np.int64) for level in tensor.lod]


def _sentences(
    ids: Sequence[Array], scores: Sequence[Array], kept: Sequence[Array], source: Array, sources: int
) -> tuple[LoDTensor, LoDTensor]:
    """Sentences of each source by descending last score, their words in the order of time."""
    count, steps = len(source), len(ids)
    table = {"ids": np.zeros((count, steps), ids[0].dtype), "scores": np.zeros((count, steps), scores[0].dtype)}
    used = np.zeros((count, steps), bool)
    final = np.zeros(count, scores[0].dtype)
    known = 0
    for back, (i, s, k) in enumerate(zip(ids, scores, kept, strict=True)):
        t, n = steps - 1 - back, len(i)
        table["ids"][:n, t], table["scores"][:n, t], used[:n, t] = i, s, k
        final[known:n] = s[known:]
        known = n
    order = np.lexsort((np.arange(count), -final, source))
    used = used[order]
    lod = [offsets_of(np.bincount(source, minlength=sources)), offsets_of(used.sum(axis=1))]
    return with_lod(table["ids"][order][used], lod), with_lod(table["scores"][order][used], lod)


# gather_tree ----------------------------------------------------------------------------------------------------------
@kernel("gather_tree", place=("cpu", "cuda"), dtypes={"int32", "int64"})
def gather_tree(Ids: Array, Parents: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather for each step of time."""
    steps, batch, beams = Ids.shape
    if Parents.size and not (0 <= int(Parents.min()) and int(Parents.max()) < beams):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Parents lie in [{int(Parents.min())}, {int(Parents.max())}]; "
            f"expected from 0 to {beams - 1}"
        )
    out = xp.empty_like(Ids)
    beam = xp.broadcast_to(xp.arange(beams), (batch, beams))
    for t in range(steps - 1, -1, -1):
        out[t] = xp.take_along_axis(Ids[t], beam, axis=1)
        beam = xp.take_along_axis(Parents[t], beam, axis=1)
    return out
