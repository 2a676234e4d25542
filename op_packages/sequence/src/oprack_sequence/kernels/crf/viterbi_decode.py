"""Kernels of viterbi_decode."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels.crf._crf import crf_sequences, viterbi


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
