"""Recurrent layers, and the best paths of labels: NumPy needs many calls for each step of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from oprack.kernel import Array, KernelContext, attr, kernel
from oprack_sequence.kernels._lod import Packing, offsets_of, sequence_offsets
from oprack_sequence.kernels.recurrent import GruCell

from oprack_numba.library import LIBRARY, usable

_FEW = 4
"""Sequences up to which rows times weights are faster here than BLAS's product of one step."""
_MANY = 64
"""Rows of a step, in the mean, from which on threads share the sequences."""


@kernel(
    "gru",
    dtypes={"float32"},
    library="numba",
    when=usable & (attr("activation") == "tanh") & (attr("gate_activation") == "sigmoid"),
    priority=5,
    may_decline=True,
)
def gru(
    Input: Array,
    Weight: Array,
    H0: Array | None = None,
    Bias: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
) -> tuple[Array, ...]:
    from oprack_numba import sequence_loops as loops  # imports numba

    offsets = sequence_offsets(ctx, "Input")
    size = len(Weight)
    # the loops trust these: others would lead them out of their memory
    if Weight.shape != (size, 3 * size) or not _are_rows(Input, offsets, 3 * size):
        return NotImplemented
    if Bias is not None and Bias.size != 3 * size:
        return NotImplemented
    if H0 is not None and (H0.shape != (len(offsets) - 1, size) or H0.dtype != Input.dtype):
        return NotImplemented
    packing, cell = Packing(offsets, is_reverse), GruCell.of(Weight, gate_activation, activation, origin_mode, np)
    gates = packing.pack(Input, np)
    if Bias is not None:
        gates += Bias.reshape(-1)
    hidden = np.empty((len(gates), size), gates.dtype)
    reset, first = np.empty_like(hidden), packing.order[: packing.sizes[0] if packing.sizes else 0]
    old = np.zeros((len(first), size), gates.dtype) if H0 is None else H0[first]
    if len(first) <= _FEW:
        starts = np.array(packing.starts, np.int64)
        loops.gru(gates, cell.w_gates, cell.w_candidate, starts, old, H0 is not None, reset, hidden, origin_mode)
    else:
        arrays, rows = (gates, old, reset, hidden), offsets_of(np.sort(np.diff(offsets))[::-1])
        run = partial(_walk, cell, packing.steps, rows, H0 is not None, arrays)
        # in short steps threads would wait for each other's hold of the interpreter
        many = len(gates) >= _MANY * len(packing.steps)
        LIBRARY.share_products(run, len(gates), len(gates) * Weight.size if many else 0)
    return gates, reset, hidden, packing.unpack(hidden, np)


def _walk(
    cell: GruCell,
    steps: Sequence[tuple[int, int]],
    rows: Array,
    begun: bool,
    arrays: tuple[Array, ...],
    first: int,
    last: int,
) -> None:
    """All steps of some sequences.

    Args:
        cell: The weights.
        steps: The first row of each step, and its end.
        rows: How many rows the sequences before each one have, longest first.
        begun: Whether the states before the first step are not all 0.
        arrays: Pre-activations, which become gates, and states before the first step; what r leaves of states, and
            states, which are written.
        first: A row that counts as `rows` does; sequences that begin before it are another's.
        last: The same of those that begin from it on.
    """
    from oprack_numba import sequence_loops as loops

    gates, old, reset, hidden = arrays
    size, (low, high) = cell.size, np.searchsorted(rows, (first, last)).tolist()
    old = old[low:high]
    for begin, end in steps:
        part = slice(begin + low, min(begin + high, end))
        if part.stop <= part.start:
            break
        now, kept, out, old = gates[part], reset[part], hidden[part], old[: part.stop - part.start]
        if begin or begun:
            now[:, : 2 * size] += old @ cell.w_gates
        loops.gru_gates(now, old, kept)
        if begin or begun:
            now[:, 2 * size :] += kept @ cell.w_candidate
        loops.gru_state(now, old, out, cell.origin_mode)
        old = out


@kernel("crf_decoding", dtypes={"float32"}, library="numba", when=usable, priority=5, may_decline=True)
def crf_decoding(
    Emission: Array, Transition: Array, Label: Array | None = None, Length: Array | None = None, *, ctx: KernelContext
) -> Array:
    from oprack_numba import sequence_loops as loops  # imports numba

    if Length is not None:
        return NotImplemented
    offsets, tags = sequence_offsets(ctx, "Emission"), Emission.shape[-1]
    # the loops trust these: others would lead them out of their memory
    if not _are_rows(Emission, offsets, tags) or Transition.shape != (tags + 2, tags):
        return NotImplemented
    if not tags or (Label is not None and Label.size != len(Emission)):
        return NotImplemented
    if not (_is_finite(Emission) and _is_finite(Transition)):
        return NotImplemented  # where NaN is the largest to NumPy, and comparisons pass it over
    emission, scores = (np.ascontiguousarray(a, np.float32) for a in (Emission, Transition))
    best = np.empty_like(emission)
    path, work = np.zeros(len(emission), np.int64), len(emission) * emission.shape[1] ** 2
    LIBRARY.share(lambda a, b: loops.viterbi(emission, offsets, scores, best, path, a, b), len(offsets) - 1, work)
    if not _is_finite(best):
        return NotImplemented
    return (path if Label is None else (path == Label.reshape(-1)).astype(np.int64)).reshape(-1, 1)


def _are_rows(array: Array, offsets: Array, width: int) -> bool:
    """Whether the sequences are all rows of an array, which has `width` columns."""
    return array.shape == (int(offsets[-1]), width) and offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())


def _is_finite(array: Array) -> bool:
    return not array.size or math.isfinite(float(array.max()) - float(array.min()))
