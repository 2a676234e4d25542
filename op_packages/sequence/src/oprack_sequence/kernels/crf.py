"""Conditional random fields: the loss, and the best path."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import Packing, host, sequence_offsets

# crf ------------------------------------------------------------------------------------------------------------------
# What the ops of a linear-chain CRF share: their sequences, given by LoD or by lengths, and decoding.
_BLOCK = 1 << 18  # elements of a temporary


def crf_sequences(ctx: KernelContext, Emission: Array, Length: Array | None) -> tuple[Packing, np.ndarray]:
    """(time-major order of the rows of Emission [N, D] or, flattened, [B, T, D]; length of each sequence)."""
    if Length is None:
        offsets = sequence_offsets(ctx, "Emission")
        return Packing(offsets), np.diff(offsets)
    batch, width = Emission.shape[:2]
    lengths = host(Length).reshape(-1).astype(np.int64)
    if len(lengths) != batch or (lengths < 0).any() or (lengths > width).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Length is {lengths.tolist()}; expected {batch} lengths from 0 to {width}, since "
            f"Emission has shape {list(Emission.shape)}"
        )
    return Packing.padded(lengths, width), lengths


def viterbi(
    packing: Packing,
    lengths: np.ndarray,
    emission: Array,
    start: Array | int,
    stop: Array | int,
    follow: Array,
    xp: ArrayModule,
) -> tuple[Any, Any]:
    """Best path of every sequence: (int64 label of each packed row, its score [n], 0 for an empty sequence).

    emission: packed rows [N, D]. start, stop: [D] added to the first and last row. follow: [D, D], from row to column.
    The first of equally good labels wins.
    """
    best = emission.copy()
    steps = packing.steps
    before: Any = None  # [D, n], so that the sequences lie in the innermost loop
    for s, e in steps:
        best[s:e] += start if before is None else _best_step(before[:, : e - s], follow, xp).T
        before = xp.ascontiguousarray(best[s:e].T)
    path = xp.empty(len(emission), xp.int64)
    scores = xp.zeros(len(lengths), emission.dtype)
    running = 0
    for t in range(len(steps) - 1, -1, -1):
        s, e = steps[t]
        n = e - s
        if running:
            # the predecessor of the label chosen one step later
            chosen = path[e : e + running]
            path[s : s + running] = (best[s : s + running] + follow[:, chosen].T).argmax(axis=1)
        if n > running:
            final = best[s + running : e] + stop
            path[s + running : e] = final.argmax(axis=1)
            scores[xp.asarray(packing.order[running:n])] = final.max(axis=1)
        running = n
    return path, scores


def _best_step(before: Array, follow: Array, xp: ArrayModule) -> Array:
    """[D, n]: for each label the best of before[i] + follow[i], in blocks of i that stay small."""
    tags, n = before.shape
    block = max(1, _BLOCK // max(1, tags * n))
    best: Any = None
    for i in range(0, tags, block):
        found = (before[i : i + block, None, :] + follow[i : i + block, :, None]).max(axis=0)
        best = found if best is None else xp.maximum(best, found)
    return best


# crf_decoding ---------------------------------------------------------------------------------------------------------
@kernel("crf_decoding", place=("cpu", "cuda"), dtypes=FLOATS)
def crf_decoding(
    Emission: Array,
    Transition: Array,
    Label: Array | None = None,
    Length: Array | None = None,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """All sequences at once, one step of time after the other."""
    packing, lengths = crf_sequences(ctx, Emission, Length)
    rows, tags = xp.asarray(packing.rows), Emission.shape[-1]
    emission = Emission.reshape(-1, tags)[rows]
    found, _ = viterbi(packing, lengths, emission, Transition[0], Transition[1], Transition[2:], xp)
    path = xp.zeros(Emission.size // tags, xp.int64)
    path[rows] = found if Label is None else found == Label.reshape(-1)[rows]
    return path.reshape(Emission.shape[:2] if Length is not None else (-1, 1))


# viterbi_decode -------------------------------------------------------------------------------------------------------
@kernel("viterbi_decode", place=("cpu", "cuda"), dtypes=FLOATS)
def viterbi_decode(
    Input: Array, Transition: Array, Length: Array, *, include_bos_eos_tag: bool, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """All sequences at once, one step of time after the other."""
    packing, lengths = crf_sequences(ctx, Input, Length)
    rows, tags = xp.asarray(packing.rows), Input.shape[-1]
    start, stop = (Transition[-1], Transition[-2]) if include_bos_eos_tag else (0, 0)
    emission = Input.reshape(-1, tags)[rows]
    found, scores = viterbi(packing, lengths, emission, start, stop, Transition, xp)
    path = xp.zeros(Input.shape[:2], xp.int64)
    path.reshape(-1)[rows] = found
    return scores, xp.ascontiguousarray(path[:, : len(packing.sizes)])
