"""Kernels of lstmp."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import Packing, sequence_offsets
from oprack_sequence.kernels.recurrent import ACTIVATIONS, LstmAttrs, LstmCell


@kernel("lstmp", place=("cpu", "cuda"), dtypes=FLOATS)
def lstmp(
    Input: Array,
    Weight: Array,
    ProjWeight: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: RequiredArray = None,
    *,
    attrs: LstmAttrs,
    proj_clip: float,
    proj_activation: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """Steps through time-major rows; each step is two products over all sequences that are still running."""
    packing = Packing(sequence_offsets(ctx, "Input"), attrs.is_reverse)
    size, projected = ProjWeight.shape
    cell = LstmCell.of(Bias, size, attrs, xp)
    gates = packing.pack(Input, xp)
    gates += Bias.reshape(-1)[: 4 * size]
    hidden, cells, activated = (xp.empty((len(gates), size), gates.dtype) for _ in range(3))
    projection = xp.empty((len(gates), projected), gates.dtype)
    order = xp.asarray(packing.order)
    r: Array | None
    c: Any  # there with r
    r, c = (None, None) if H0 is None else (H0[order], C0[order])
    with np.errstate(over="ignore"):
        for start, end in packing.steps:
            g = gates[start:end]
            if r is not None:
                r, c = r[: end - start], c[: end - start]
                g += r @ Weight
            cell.forward(g, c, cells[start:end], activated[start:end], hidden[start:end])
            r, c = projection[start:end], cells[start:end]
            r[...] = hidden[start:end] @ ProjWeight
            ACTIVATIONS[proj_activation].apply(r, xp)
            if proj_clip > 0:
                xp.clip(r, -proj_clip, proj_clip, out=r)
    return packing.unpack(projection, xp), packing.unpack(cells, xp), gates, activated, hidden


@kernel("lstmp_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def lstmp_grad(
    Weight: Array,
    ProjWeight: Array,
    Bias: Array,
    Projection: Array,
    Cell: Array,
    BatchGate: Array,
    BatchCellPreAct: Array,
    BatchHidden: Array,
    Projection_grad: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    Cell_grad: Array | None = None,
    *,
    attrs: LstmAttrs,
    proj_clip: float,
    proj_activation: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    """Walks the time-major rows back, collecting the gradient before every activation."""
    packing = Packing(sequence_offsets(ctx, "Projection"), attrs.is_reverse)
    size = ProjWeight.shape[0]
    cell = LstmCell.of(Bias, size, attrs, xp)
    cells, projection = packing.pack(Cell, xp), packing.pack(Projection, xp)
    r_prev = packing.previous(projection, H0, xp)
    c_prev = packing.previous(cells, C0, xp)
    slope = ACTIVATIONS[proj_activation].slope(projection, xp)
    if proj_clip > 0:
        slope = slope * (abs(projection) < proj_clip)
    d_projection = packing.pack(Projection_grad, xp)
    d_cells = xp.zeros_like(cells) if Cell_grad is None else packing.pack(Cell_grad, xp)
    d_gates = xp.empty_like(BatchGate)
    dr_prev: Array | None = None
    dc_prev: Any = None  # there with dr_prev
    for start, end in reversed(packing.steps):
        step = slice(start, end)
        if dr_prev is not None:
            d_projection[start : start + len(dr_prev)] += dr_prev
            d_cells[start : start + len(dc_prev)] += dc_prev
        d_projection[step] *= slope[step]
        dc_prev = cell.backward(
            BatchGate[step],
            c_prev[step],
            cells[step],
            BatchCellPreAct[step],
            d_projection[step] @ ProjWeight.T,
            d_cells[step],
            d_gates[step],
        )
        dr_prev = d_gates[step] @ Weight.T
    return {
        "Input@GRAD": packing.unpack(d_gates, xp),
        "H0@GRAD": None if H0 is None else packing.scatter_initial(dr_prev, H0, xp),
        "C0@GRAD": None if C0 is None else packing.scatter_initial(dc_prev, C0, xp),
        "Weight@GRAD": r_prev.T @ d_gates,
        "ProjWeight@GRAD": BatchHidden.T @ d_projection,
        "Bias@GRAD": cell.bias_grad(d_gates, c_prev, cells),
    }
