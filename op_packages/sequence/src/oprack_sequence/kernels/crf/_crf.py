"""What the ops of a linear-chain CRF share: their sequences, given by LoD or by lengths, and decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext

from oprack_sequence.kernels._lod import Packing, host, sequence_offsets

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
    before = None  # [D, n], so that the sequences lie in the innermost loop
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


def _best_step(before: Array, follow: Array, xp: ArrayModule) -> Array | None:
    """[D, n]: for each label the best of before[i] + follow[i], in blocks of i that stay small."""
    tags, n = before.shape
    block = max(1, _BLOCK // max(1, tags * n))
    best = None
    for i in range(0, tags, block):
        found = (before[i : i + block, None, :] + follow[i : i + block, :, None]).max(axis=0)
        best = found if best is None else xp.maximum(best, found)
    return best
