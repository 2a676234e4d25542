"""gru, lstm and rnn: per time step the products by cuBLAS, and everything between them in one or two launches."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray
from oprack.types import FLOATS
from oprack_sequence.kernels._lod import Packing, sequence_offsets
from oprack_sequence.kernels.recurrent import GruCell, Layer, LstmAttrs, LstmCell
from oprack_sequence.kernels.rnn import run_layers

from oprack_cuda.kernels._launch import F64, I32, I64, cuda_kernel, dense, launch
from oprack_cuda.raw import Argument

_CODES = {name: I32(i) for i, name in enumerate(("identity", "sigmoid", "tanh", "relu"))}


def _step(xp: ArrayModule, name: str, array: Array, rows: int, size: int, *arguments: Argument) -> None:
    launch(xp, "recurrent.cu", name, array.dtype, rows * size, *arguments)


@cuda_kernel("gru", FLOATS)
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
    packing = Packing(sequence_offsets(ctx, "Input"), is_reverse)
    cell = GruCell.of(dense(xp, Weight), gate_activation, activation, origin_mode, xp)
    gates, size = packing.pack(Input, xp), cell.size
    if Bias is not None:
        gates += Bias.reshape(-1)
    hidden = xp.empty((len(gates), size), gates.dtype)
    reset = xp.zeros_like(hidden)
    gate, candidate, mode = _CODES[gate_activation], _CODES[activation], I32(origin_mode)
    h = None if H0 is None else H0[xp.asarray(packing.order)]
    for start, end in packing.steps:
        g, kept, n = gates[start:end], reset[start:end], end - start
        h = None if h is None else h[:n]
        product = None if h is None else h @ cell.w_gates
        _step(xp, "gru_gates", g, n, size, g, product, h, kept, I64(n), I64(size), gate)
        product = None if h is None else kept @ cell.w_candidate
        out = hidden[start:end]
        _step(xp, "gru_output", g, n, size, g, product, h, out, I64(n), I64(size), candidate, mode)
        h = out
    return gates, reset, hidden, packing.unpack(hidden, xp)


@cuda_kernel("gru_grad", FLOATS)
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
    packing = Packing(sequence_offsets(ctx, "Input"), is_reverse)
    cell = GruCell.of(dense(xp, Weight), gate_activation, activation, origin_mode, xp)
    size, gates = cell.size, dense(xp, BatchGate)
    h_prev, dh = packing.previous(BatchHidden, H0, xp), packing.pack(Hidden_grad, xp)
    d_gates, flow = xp.empty_like(gates), None
    gate, candidate, mode = _CODES[gate_activation], _CODES[activation], I32(origin_mode)
    for start, end in reversed(packing.steps):
        n, g, d, before, here = end - start, *(a[start:end] for a in (gates, d_gates, h_prev, dh))
        later = 0 if flow is None else len(flow)
        numbers = I64(n), I64(later), I64(size), candidate, mode
        _step(xp, "gru_grad_candidate", g, n, size, g, flow, here, d, *numbers)
        d_reset = xp.ascontiguousarray(d[:, 2 * size :]) @ cell.w_candidate.T
        flow = xp.empty_like(before)
        given = g, before, here, dense(xp, d_reset), d, flow
        _step(xp, "gru_grad_gates", g, n, size, *given, I64(n), I64(size), gate, mode)
        flow += xp.ascontiguousarray(d[:, : 2 * size]) @ cell.w_gates.T
    return {
        "Input@GRAD": packing.unpack(d_gates, xp),
        "H0@GRAD": None if H0 is None else packing.scatter_initial(flow, H0, xp),
        "Weight@GRAD": cell.weight_grad(d_gates, h_prev, BatchResetHiddenPrev),
        "Bias@GRAD": d_gates.sum(axis=0, keepdims=True) if ctx.wants("Bias@GRAD") else None,
    }


def _peepholes(bias: Array, size: int, use: bool, xp: ArrayModule) -> Array | None:
    return dense(xp, bias.reshape(-1)[4 * size :].copy()) if use else None


def _codes(attrs: LstmAttrs) -> list[Argument]:
    return [_CODES[a] for a in (attrs.gate_activation, attrs.candidate_activation, attrs.cell_activation)]


@cuda_kernel("lstm", FLOATS)
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
    packing, size = Packing(sequence_offsets(ctx, "Input"), attrs.is_reverse), Weight.shape[0]
    gates = packing.pack(Input, xp)
    gates += Bias.reshape(-1)[: 4 * size]
    hidden, cells, activated = (xp.empty((len(gates), size), gates.dtype) for _ in range(3))
    order, peepholes = xp.asarray(packing.order), _peepholes(Bias, size, attrs.use_peepholes, xp)
    codes = _codes(attrs)
    h, c = (None, None) if H0 is None else (H0[order], C0[order])
    for start, end in packing.steps:
        n, g = end - start, gates[start:end]
        product, c = (None, None) if h is None or c is None else (h[:n] @ Weight, c[:n])
        given = g, product, c, peepholes, cells[start:end], activated[start:end], hidden[start:end]
        _step(xp, "lstm_step", g, n, size, *given, I64(n), I64(size), *codes, F64(0))
        h, c = hidden[start:end], cells[start:end]
    return packing.unpack(hidden, xp), packing.unpack(cells, xp), gates, activated


@cuda_kernel("lstm_grad", FLOATS)
def lstm_grad(
    Weight: Array,
    Bias: Array,
    Hidden: Array,
    Cell: Array,
    BatchGate: Array,
    BatchCellPreAct: Array,
    Hidden_grad: Array,
    H0: Array | None = None,
    C0: RequiredArray = None,
    Cell_grad: Array | None = None,
    *,
    attrs: LstmAttrs,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    packing, size = Packing(sequence_offsets(ctx, "Input"), attrs.is_reverse), Weight.shape[0]
    cell = LstmCell.of(Bias, size, attrs, xp)
    gates, activated, cells = dense(xp, BatchGate), dense(xp, BatchCellPreAct), packing.pack(Cell, xp)
    h_prev, c_prev = packing.previous(packing.pack(Hidden, xp), H0, xp), packing.previous(cells, C0, xp)
    dh, d_gates = packing.pack(Hidden_grad, xp), xp.empty_like(gates)
    dc = None if Cell_grad is None else packing.pack(Cell_grad, xp)
    peepholes = _peepholes(Bias, size, attrs.use_peepholes, xp)
    codes = _codes(attrs)
    dh_prev = dc_prev = None
    for start, end in reversed(packing.steps):
        n, later = end - start, 0 if dh_prev is None else len(dh_prev)
        given = [a[start:end] for a in (gates, c_prev, cells, activated, dh)]
        if dc is not None:  # what comes from the later step joins the gradients of this one's cells
            dh_all, dc_all = xp.zeros((n, size), gates.dtype), dc[start:end]
            if later:
                dh_all[:later] = dh_prev
                dc_all[:later] += dc_prev
            dh_prev, dc_prev, later = dh_all, dc_all, n
        d, back = d_gates[start:end], xp.empty((n, size), gates.dtype)
        numbers: tuple[Argument, ...] = I64(n), I64(later), I64(size), *codes, F64(0)
        _step(xp, "lstm_grad", gates, n, size, *given, dh_prev, dc_prev, peepholes, d, back, *numbers)
        dh_prev, dc_prev = dense(xp, d @ Weight.T), back
    return {
        "Input@GRAD": packing.unpack(d_gates, xp),
        "H0@GRAD": None if H0 is None else packing.scatter_initial(dh_prev, H0, xp),
        "C0@GRAD": None if C0 is None else packing.scatter_initial(dc_prev, C0, xp),
        "Weight@GRAD": h_prev.T @ d_gates,
        "Bias@GRAD": cell.bias_grad(d_gates, c_prev, cells),
    }


_MODES = {name: I32(i) for i, name in enumerate(("RNN_TANH", "RNN_RELU", "LSTM", "GRU"))}


class _FusedLayer(Layer):
    """A direction of a layer of rnn whose steps are a product and one launch each; gradients are the pack's."""

    def forward(self, x: Array, h: Array, c: Array | None, kept: Array | None) -> tuple[Array, Array, Array | None]:
        xp, (n, size) = self.xp, h.shape
        pre = x @ self.w_ih.T
        pre += self.b_ih
        out, w_hh, bias = xp.empty((*x.shape[:2], size), x.dtype), self.w_hh.T, dense(xp, self.b_hh)
        h, c = dense(xp, h), dense(xp, c)
        for t in self._times(len(x)):
            new_h, new_c = xp.empty_like(h), None if c is None else xp.empty_like(c)
            mask = None if self.mask is None else dense(xp, self.mask[t])
            given = pre[t], dense(xp, h @ w_hh), bias, h, c, mask
            made = out[t], new_h, new_c, None if kept is None else kept[t]
            _step(xp, "rnn_step", out, n, size, *given, *made, I64(n), I64(size), _MODES[self.mode])
            h, c = new_h, new_c
        return out, h, c


@cuda_kernel("rnn", FLOATS)
def rnn(
    Input: Array,
    PreState: list[Array],
    WeightList: list[Array],
    SequenceLength: Array | None = None,
    *,
    dropout_prob: float,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
    seed: int,
    is_test: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | list[Array] | None]:
    directions = 2 if is_bidirec else 1
    size, training = (hidden_size, num_layers * directions, directions), None if is_test else (dropout_prob, seed)
    return run_layers(Input, PreState, WeightList, SequenceLength, size, mode, training, _FusedLayer, ctx, xp)
