"""Kernel of chunk_eval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel

# tags of each scheme: how many, and which mean begin, inside, end, single (-1: none)
_SCHEMES = {"IOB": (2, 0, 1, -1, -1), "IOE": (2, -1, 0, 1, -1), "IOBES": (4, 0, 1, 2, 3), "plain": (1, -1, -1, -1, -1)}


def _chunks(tags: Array, first: Array, types: int, scheme: str) -> Array:
    """(begin, end, type) [3, chunks] of all chunks. tags: [N]. first: mask of the positions that start a sequence."""
    count, begin, inside, end, single = _SCHEMES[scheme]
    tag, kind = tags % count, tags // count
    outside = kind == types
    last_tag = np.concatenate([[-1], tag[:-1]])
    last_kind = np.where(first, types, np.concatenate([[types], kind[:-1]]))
    last_tag = np.where(first, -1, last_tag)
    was_outside, other = last_kind == types, kind != last_kind

    closed = (last_tag == end) | (last_tag == single)
    opens_inside = (tag == begin) | (tag == single)
    starts = ~outside & (was_outside | other | opens_inside | (((tag == inside) | (tag == end)) & closed))
    open_before = (last_tag == begin) | (last_tag == inside)
    ends = ~was_outside & (outside | other | (open_before & opens_inside) | closed)
    at = np.flatnonzero(starts)
    stops = np.append(np.flatnonzero(ends | first), len(tags))
    until = stops[np.searchsorted(stops, at, side="right")] - 1
    return np.stack([at, until, kind[at]])


def _flat(tags: Array, lengths: Array | None, lod: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Tags of all sequences one after another, and which of them start one."""
    if lengths is not None:
        lengths = np.asarray(lengths).reshape(-1).astype(np.int64)
        rows = tags.reshape(len(lengths), -1)
        inside = np.arange(rows.shape[1]) < lengths[:, None]
        starts = np.zeros(rows.shape, bool)
        starts[:, :1] = True
        return rows[inside].astype(np.int64), starts[inside]
    if not lod:
        raise InvalidArgumentError(
            "op chunk_eval: neither LoD nor SeqLength tells the sequences apart; feed Inference and Label with LoD, or "
            "give SeqLength"
        )
    flat = tags.reshape(-1).astype(np.int64)
    begins = np.zeros(len(flat) + 1, bool)  # an empty last sequence would start behind the end
    begins[lod[-1][:-1]] = True
    return flat, begins[:-1]


@kernel("chunk_eval", dtypes={"float32"})
def chunk_eval(
    Inference: Array,
    Label: Array,
    SeqLength: Array | None = None,
    *,
    num_chunk_types: int,
    chunk_scheme: str,
    excluded_chunk_types: list[int],
    ctx: KernelContext,
) -> tuple[Array, ...]:
    found = []
    for slot, tags in (("Inference", Inference), ("Label", Label)):
        flat, first = _flat(tags, SeqLength, ctx.lod(slot))
        chunks = _chunks(flat, first, num_chunk_types, chunk_scheme)
        found.append(chunks[:, ~np.isin(chunks[2], excluded_chunk_types)])
    infer, label = found
    # a position begins at most one chunk, so equal begins are matched first
    _, i, j = np.intersect1d(infer[0], label[0], assume_unique=True, return_indices=True)
    right = int((infer[:, i] == label[:, j]).all(axis=0).sum())
    counts = infer.shape[1], label.shape[1], right
    precision = right / counts[0] if counts[0] else 0.0
    recall = right / counts[1] if counts[1] else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    rates = (np.array([v], np.float32) for v in (precision, recall, f1))
    return (*rates, *(np.array([n], np.int64) for n in counts))
