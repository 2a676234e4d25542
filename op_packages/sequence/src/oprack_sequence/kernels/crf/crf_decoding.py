"""Kernels of crf_decoding."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels.crf._crf import crf_sequences, viterbi


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
