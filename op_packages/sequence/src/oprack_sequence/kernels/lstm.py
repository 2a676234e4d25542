"""Kernels of lstm."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import Packing, sequence_offsets
from oprack_sequence.kernels.recurrent import LstmAttrs, LstmCell


@kernel("lstm", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm(
    Input: Array,
    Weight: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: RequiredArray = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """Steps through time-major rows; each step is one product over all sequences that are still running."""
    packing = Packing(sequence_offsets(ctx, "Input"), attrs.is_reverse)
    size = Weight.shape[0]
    cell = LstmCell.of(Bias, size, attrs, xp)
    gates = packing.pack(Input, xp)
    gates += Bias.reshape(-1)[: 4 * size]
    hidden, cells, activated = (xp.empty((len(gates), size), gates.dtype) for _ in range(3))
    order = xp.asarray(packing.order)
    h: Array | None
    c: Any  # there with h
    h, c = (None, None) if H0 is None else (H0[order], C0[order])
    with np.errstate(over="ignore"):
        for start, end in packing.steps:
            g = gates[start:end]
            if h is not None:
                h, c = h[: end - start], c[: end - start]
                g += h @ Weight
            cell.forward(g, c, cells[start:end], activated[start:end], hidden[start:end])
            h, c = hidden[start:end], cells[start:end]
    return packing.unpack(hidden, xp), packing.unpack(cells, xp), gates, activated


@kernel("lstm_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm_grad(
    Weight: Array,
    Bias: Array,
    Hidden: Array,
    Cell: Array,
    BatchGate: Array,
    BatchCellPreAct: Array,
    Hidden_grad: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    Cell_grad: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    """Walks the time-major rows back, collecting the gradient before every activation."""
    packing = Packing(sequence_offsets(ctx, "Input"), attrs.is_reverse)
    size = Weight.shape[0]
    cell = LstmCell.of(Bias, size, attrs, xp)
    cells = packing.pack(Cell, xp)
    h_prev = packing.previous(packing.pack(Hidden, xp), H0, xp)
    c_prev = packing.previous(cells, C0, xp)
    d_hidden = packing.pack(Hidden_grad, xp)
    d_cells = xp.zeros_like(d_hidden) if Cell_grad is None else packing.pack(Cell_grad, xp)
    d_gates = xp.empty_like(BatchGate)
    dh_prev: Array | None = None
    dc_prev: Any = None  # there with dh_prev
    for start, end in reversed(packing.steps):
        step = slice(start, end)
        if dh_prev is not None:
            d_hidden[start : start + len(dh_prev)] += dh_prev
            d_cells[start : start + len(dc_prev)] += dc_prev
        dc_prev = cell.backward(
            BatchGate[step],
            c_prev[step],
            cells[step],
            BatchCellPreAct[step],
            d_hidden[step],
            d_cells[step],
            d_gates[step],
        )
        dh_prev = d_gates[step] @ Weight.T
    return {
        "Input@GRAD": packing.unpack(d_gates, xp),
        "H0@GRAD": None if H0 is None else packing.scatter_initial(dh_prev, H0, xp),
        "C0@GRAD": None if C0 is None else packing.scatter_initial(dc_prev, C0, xp),
        "Weight@GRAD": h_prev.T @ d_gates,
        "Bias@GRAD": cell.bias_grad(d_gates, c_prev, cells),
    }
