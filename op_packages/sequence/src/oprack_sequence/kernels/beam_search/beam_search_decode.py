"""Kernels of beam_search_decode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.types import FLOATS, HALF_FLOATS

from oprack_sequence.kernels._lod import offsets_of, row_ranges, with_lod


@kernel("beam_search_decode", dtypes=FLOATS | HALF_FLOATS | {"int32", "int64"})
def beam_search_decode(
    Ids: LoDTensorArray, Scores: LoDTensorArray, *, end_id: int, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor]:
    """Follows all sentences of all sources from the last step back, one step of time after the other."""
    if not Ids or len(Ids) != len(Scores):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids has {len(Ids)} steps and Scores {len(Scores)}; expected as many, at least one"
        )
    prefixes, words = zip(*(_step_offsets(t, i, ctx) for i, t in enumerate(Ids)), strict=True)
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
        ids.append(Ids[t].array.reshape(-1)[row])
        scores.append(Scores[t].array.reshape(-1)[row])
        kept.append((ids[-1] != end_id) | (np.arange(len(row)) >= known))
        row = np.searchsorted(words[t], row, side="right") - 1
    return _sentences(ids, scores, kept, source, sources)


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
