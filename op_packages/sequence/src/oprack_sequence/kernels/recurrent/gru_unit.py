"""Kernels of gru_unit."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels.recurrent._activations import ACTIVATIONS
from oprack_sequence.kernels.recurrent._gru_cell import GruCell

_NAMES = tuple(ACTIVATIONS)


@kernel("gru_unit", place=("cpu", "cuda"), dtypes=FLOATS)
def gru_unit(
    Input: Array,
    HiddenPrev: Array,
    Weight: Array,
    Bias: Array | None = None,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """The step that gru repeats."""
    cell = GruCell.of(Weight, _NAMES[gate_activation], _NAMES[activation], origin_mode, xp)
    gate = Input.copy() if Bias is None else Input + Bias.reshape(-1)
    reset, hidden = xp.empty_like(HiddenPrev), xp.empty_like(HiddenPrev)
    with np.errstate(over="ignore"):
        cell.forward(gate, HiddenPrev, reset, hidden)
    return gate, reset, hidden


@kernel("gru_unit_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gru_unit_grad(
    HiddenPrev: Array,
    Weight: Array,
    Gate: Array,
    ResetHiddenPrev: Array,
    Hidden_grad: Array,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """The step back that gru_grad repeats."""
    cell = GruCell.of(Weight, _NAMES[gate_activation], _NAMES[activation], origin_mode, xp)
    d_gates = xp.empty_like(Gate)
    hidden_prev_grad = cell.backward(Gate, HiddenPrev, Hidden_grad, d_gates)
    return {
        "Input@GRAD": d_gates,
        "HiddenPrev@GRAD": hidden_prev_grad,
        "Weight@GRAD": cell.weight_grad(d_gates, HiddenPrev, ResetHiddenPrev),
        "Bias@GRAD": d_gates.sum(axis=0, keepdims=True) if ctx.wants("Bias@GRAD") else None,
    }
