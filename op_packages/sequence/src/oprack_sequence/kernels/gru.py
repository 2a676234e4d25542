"""Kernels of gru."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import Packing, sequence_offsets
from oprack_sequence.kernels.recurrent import GruCell


@kernel("gru", place=("cpu", "cuda"), dtypes=FLOATS)
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
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """Steps through time-major rows; each step is two products over all sequences that are still running."""
    packing = Packing(sequence_offsets(ctx, "Input"), is_reverse)
    cell = GruCell.of(Weight, gate_activation, activation, origin_mode, xp)
    gates = packing.pack(Input, xp)
    if Bias is not None:
        gates += Bias.reshape(-1)
    hidden = xp.empty((len(gates), cell.size), gates.dtype)
    reset = xp.zeros_like(hidden)
    h = None if H0 is None else H0[xp.asarray(packing.order)]
    with np.errstate(over="ignore"):
        for start, end in packing.steps:
            if h is not None:
                h = h[: end - start]
            cell.forward(gates[start:end], h, reset[start:end], hidden[start:end])
            h = hidden[start:end]
    return gates, reset, hidden, packing.unpack(hidden, xp)


@kernel("gru_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gru_grad(
    Weight: Array,
    BatchGate: Array,
    BatchResetHiddenPrev: Array,
    BatchHidden: Array,
    Hidden_grad: Array,
    H0: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    """Walks the time-major rows back, collecting the gradient before every activation."""
    packing = Packing(sequence_offsets(ctx, "Input"), is_reverse)
    cell = GruCell.of(Weight, gate_activation, activation, origin_mode, xp)
    h_prev = packing.previous(BatchHidden, H0, xp)
    d_hidden = packing.pack(Hidden_grad, xp)
    d_gates = xp.empty_like(BatchGate)
    dh_prev = None
    for start, end in reversed(packing.steps):
        step = slice(start, end)
        if dh_prev is not None:
            d_hidden[start : start + len(dh_prev)] += dh_prev
        dh_prev = cell.backward(BatchGate[step], h_prev[step], d_hidden[step], d_gates[step])
    return {
        "Input@GRAD": packing.unpack(d_gates, xp),
        "H0@GRAD": None if H0 is None else packing.scatter_initial(dh_prev, H0, xp),
        "Weight@GRAD": cell.weight_grad(d_gates, h_prev, BatchResetHiddenPrev),
        "Bias@GRAD": d_gates.sum(axis=0, keepdims=True) if ctx.wants("Bias@GRAD") else None,
    }
