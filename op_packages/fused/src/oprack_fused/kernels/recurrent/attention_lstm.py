"""Kernel of attention_lstm: one walk over the steps, all sequences at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import DTYPES, Steps


class Weights(NamedTuple):
    """Parameters of the attention and of the LSTM."""

    AttentionWeight: Array
    LSTMWeight: Array
    LSTMBias: Array
    AttentionBias: Array | None = None
    AttentionScalar: Array | None = None
    AttentionScalarBias: Array | None = None


class Activations(NamedTuple):
    """Types of activations' ops."""

    gate_activation: str
    cell_activation: str
    candidate_activation: str


def _weights_of_rows(scores: Array, there: Array, weights: Weights) -> Array:
    """softmax over the rows of each sequence; there: which places of [sequences, rows] hold one."""
    e = np.maximum(scores, 0)
    if weights.AttentionScalar is not None:
        e = e * weights.AttentionScalar.reshape(())
        if weights.AttentionScalarBias is not None:
            e = e + weights.AttentionScalarBias.reshape(())
        e = np.maximum(e, 0)
    e = np.where(there, e, -np.inf)
    e = np.exp(e - e.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@kernel("attention_lstm", dtypes=DTYPES)
def attention_lstm(
    X: Array, C0: Array, weights: Weights, H0: Array | None = None, *, activations: Activations, ctx: KernelContext
) -> dict[str, Array]:
    """Rows are padded to the longest sequence; sequences that have ended keep their state."""
    step, offsets = Steps(ctx), np.asarray(ctx.lod("X")[-1], np.int64)
    lengths, (columns, size) = np.diff(offsets), (X.shape[1], C0.shape[1])
    attended = X @ weights.AttentionWeight[:columns]
    if weights.AttentionBias is not None:
        attended = attended + weights.AttentionBias
    longest = int(lengths.max(initial=0))
    there = np.arange(longest) < lengths[:, None]
    places = np.where(there, offsets[:-1, None] + np.arange(longest), 0)
    hidden, cell = np.zeros((2, len(X), size), X.dtype)
    h, c = np.zeros_like(C0) if H0 is None else H0.copy(), C0.copy()
    for t in range(longest):
        live = np.flatnonzero(lengths > t)
        rows, known = places[live], there[live]
        scores = attended[rows, 0] + c[live] @ weights.AttentionWeight[columns:]
        share = _weights_of_rows(scores, known, weights)
        seen = (share[..., None] * X[rows]).sum(axis=1)
        gates = h[live] @ weights.LSTMWeight[:size] + seen @ weights.LSTMWeight[size:] + weights.LSTMBias
        forget, new, out = np.split(step.activated(gates[:, : 3 * size], activations.gate_activation), 3, axis=1)
        candidate = step.activated(gates[:, 3 * size :], activations.candidate_activation)
        c[live] = forget * c[live] + new * candidate
        h[live] = out * step.activated(c[live], activations.cell_activation)
        hidden[rows[:, t]], cell[rows[:, t]] = h[live], c[live]
    nothing = dict.fromkeys(("AttentionFCOut", "LSTMX", "LSTMOUT"), np.empty(0, X.dtype))
    return {"Hidden": hidden, "Cell": cell, "AttentionedX": attended, **nothing}
