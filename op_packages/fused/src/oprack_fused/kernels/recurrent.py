"""Kernels of recurrent nets that begin with a product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps

if TYPE_CHECKING:
    from oprack.tensor.lod_tensor import LoD


# lstm -----------------------------------------------------------------------------------------------------------------
# lstm as the last step of a fused op.
class LstmAttrs(NamedTuple):
    """Attributes that go to lstm as they are."""

    use_peepholes: bool
    is_reverse: bool
    gate_activation: str
    cell_activation: str
    candidate_activation: str


def lstm(
    ctx: KernelContext,
    rows: Array,
    weight: Array,
    bias: Array,
    h0: Array | None,
    c0: Array | None,
    attrs: LstmAttrs,
    lod: LoD,
    xp: ArrayModule,
) -> dict[str, Array]:
    """Hidden, Cell, XX, and the buffers that are empty.

    Args:
        ctx: The context of the fused op's kernel.
        rows: What the gates take from the rows.
        weight: Weight of lstm.
        bias: Bias of lstm.
        h0: Initial h.
        c0: Initial c.
        attrs: Attributes of lstm.
        lod: Offsets of the sequences.
        xp: NumPy or CuPy.
    """
    inputs = {"Input": rows, "H0": h0, "C0": c0, "Weight": weight, "Bias": bias}
    found = Steps(ctx).all("lstm", **inputs, lods={"Input": lod}, **attrs._asdict())
    nothing = xp.empty(0, rows.dtype)
    buffers = ("BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0")
    return {"Hidden": found["Hidden"], "Cell": found["Cell"], "XX": rows, **dict.fromkeys(buffers, nothing)}


# attention_lstm -------------------------------------------------------------------------------------------------------
# Kernel of attention_lstm: one walk over the steps, all sequences at a time.
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


# fused_embedding_fc_lstm ----------------------------------------------------------------------------------------------
@kernel("fused_embedding_fc_lstm", place=BOTH, dtypes=DTYPES)
def fused_embedding_fc_lstm(
    Ids: Array,
    Embeddings: Array,
    WeightH: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """lookup_table_v2, lstm; the bias is in the table."""
    rows = Steps(ctx)("lookup_table_v2", W=Embeddings, Ids=Ids.reshape(-1))
    bias = Bias.copy()
    bias[:, : rows.shape[1]] = 0
    return lstm(ctx, rows, WeightH, bias, H0, C0, attrs, ctx.lod("Ids"), xp)


# fusion_gru -----------------------------------------------------------------------------------------------------------
@kernel("fusion_gru", place=BOTH, dtypes=DTYPES)
def fusion_gru(
    X: Array,
    WeightX: Array,
    WeightH: Array,
    H0: Array | None = None,
    Bias: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """mul, gru."""
    step = Steps(ctx)
    rows, nothing = step("mul", X=X, Y=WeightX), xp.empty(0, X.dtype)
    attrs: dict[str, Any] = {"activation": activation, "gate_activation": gate_activation}
    attrs |= {"is_reverse": is_reverse, "origin_mode": origin_mode}
    lods = {"Input": ctx.lod("X")}
    states = step("gru", Input=rows, H0=H0, Weight=WeightH, Bias=Bias, lods=lods, want="Hidden", **attrs)
    return {"Hidden": states, "XX": rows, **dict.fromkeys(("ReorderedH0", "BatchedInput", "BatchedOut"), nothing)}


# fusion_lstm ----------------------------------------------------------------------------------------------------------
@kernel("fusion_lstm", place=BOTH, dtypes=DTYPES)
def fusion_lstm(
    X: Array,
    WeightX: Array,
    WeightH: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """mul, lstm."""
    rows = Steps(ctx)("mul", X=X, Y=WeightX)
    found = lstm(ctx, rows, WeightH, Bias, H0, C0, attrs, ctx.lod("X"), xp)
    return {**found, "CheckedCell": xp.empty(0, X.dtype)}
