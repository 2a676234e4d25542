"""gru and lstm, not fused with the product in front, and the gradient of gru.

Their input holds the products with it already. What only their gradients read is made for a gru in training alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants, is_constant
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._recurrent import FUNCTIONS, KEPT, Cell, Direction, order_of, serves, walk
from oprack_onednn.kernels._recurrent_grad import column_sums, gradients_of_gates, product, steps_of_lod
from oprack_onednn.kernels._steps import run_reference
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.kernels.fc_recurrent import LSTM_GATES, gru_weights, lstm_weights


def _gru_direction(arrays: tuple[Array, ...], cell: Cell) -> Direction:
    return Direction(cell, gru_weights(arrays[0]))


def _lstm_direction(arrays: tuple[Array, ...], functions: tuple[str, str, str]) -> Direction:
    return Direction(Cell("lstm", functions, gates=LSTM_GATES), lstm_weights(arrays[0]))


_GRU, _LSTM = FromConstants(_gru_direction), FromConstants(_lstm_direction)


def _states(
    direction: Direction,
    x: Array,
    bias: Array | None,
    before: Sequence[Array | None],
    offsets: Sequence[int],
    is_reverse: bool,
    kept: Array | None = None,
) -> list[Array] | None:
    """Every row's states; None where native code does not serve them.

    Args:
        direction: The weights.
        x: [N, gates size].
        bias: gates size numbers, or None.
        before: Of each state what it begins with, [number of sequences, size], or None for zeros.
        offsets: Of the sequences.
        is_reverse: Whether they are walked from their last row on.
        kept: As `walk` takes it.
    """
    order, size = order_of(tuple(offsets)), direction.size
    if not x.size or offsets[-1] != len(x) or not THREAD.ready():
        return None
    if any(s is not None and s.shape != (order.count, size) for s in before):
        return None
    x = np.ascontiguousarray(x) if bias is None else np.add(x, bias, out=BUFFERS.take(x.shape))
    if not x.flags.aligned:
        x = x.copy()
    found = [BUFFERS.take((len(x), size)) for _ in before]
    out_c = found[1] if len(found) > 1 else None
    walk([direction], [is_reverse], x, order, found[0], out_c=out_c, kept=kept, before=[before])
    return found


def _fits(x: Array, weight: Array, bias: Array | None, gates: int) -> bool:
    """Whether the arrays have the sizes of the op's; NumPy's kernel says what is wrong where they have not."""
    size = weight.shape[0]
    if weight.shape != (size, gates * size) or x.shape[1:] != (gates * size,):
        return False
    return x.ndim == 2 and (bias is None or bias.size == gates * size)


@onednn_kernel("gru")
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
) -> tuple[Array | None, ...]:
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, H0, Bias)):
        return NotImplemented
    states, lod = None, ctx.lod("Input")
    cell = _gru_cell(gate_activation, activation, origin_mode)
    bias = None if Bias is None else Bias.reshape(-1)
    fits = bool(lod) and _fits(Input, Weight, Bias, 3)
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchResetHiddenPrev", "BatchHidden"):
        if cell is None or not fits or not Input.size:
            return NotImplemented
        found = _trained_gru(_gru_direction((Weight,), cell), Input, bias, H0, lod[-1], is_reverse)
        return NotImplemented if found is None else found
    if cell is not None and fits:
        states = _states(_GRU((Weight,), cell), Input, bias, [H0], lod[-1], is_reverse)
    if states is None:
        arrays = {"Input": Input, "Weight": Weight, "H0": H0, "Bias": Bias}
        # What native code does not serve is computed here rather than declined, so that the outputs are the same ones.
        states = [run_reference("gru", arrays, ctx.attrs, {"Input": [lod]})[3]]
    # always the same: plans of programs count on which outputs there are
    return None, None, None, states[0]


def _gru_cell(gate: str, candidate: str, origin_mode: bool) -> Cell | None:
    """What a step computes; None where native code does not serve it."""
    served = gate in FUNCTIONS and candidate in FUNCTIONS and serves()
    return Cell("gru", (gate, candidate, "identity"), origin_mode) if served else None


def _trained_gru(
    direction: Direction, x: Array, bias: Array | None, h0: Array | None, offsets: Sequence[int], is_reverse: bool
) -> tuple[Array, Array, Array, Array] | None:
    """All outputs, those that the gradient reads in the order of the steps; None where native code does not serve."""
    size = direction.size
    kept = BUFFERS.take((1, len(x), KEPT["gru"] * size))
    states = _states(direction, x, bias, [h0], offsets, is_reverse, kept)
    if states is None:
        return None
    taken, gates = steps_of_lod(tuple(offsets), is_reverse).taken, 3 * size
    return taken(kept[0, :, :gates]), taken(kept[0, :, gates:]), taken(states[0]), states[0]


@onednn_kernel("gru_grad")
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
) -> dict[str, Array | None]:
    lod, given = ctx.lod("Input"), (Weight, BatchGate, BatchResetHiddenPrev, BatchHidden, Hidden_grad, H0)
    cell = _gru_cell(gate_activation, activation, origin_mode)
    if cell is None or not lod or any(a is not None and (a.dtype != FLOAT or not a.flags.aligned) for a in given):
        return NotImplemented
    size, count, sequences = Weight.shape[0], lod[-1][-1], len(lod[-1]) - 1
    if not count or not size or not THREAD.ready() or not _fits(BatchGate, Weight, None, 3) or len(BatchGate) != count:
        return NotImplemented
    if any(a.shape != (count, size) for a in given[2:5]) or (H0 is not None and H0.shape != (sequences, size)):
        return NotImplemented
    gate, hidden, reset = (np.ascontiguousarray(a) for a in (BatchGate, BatchHidden, BatchResetHiddenPrev))
    steps = steps_of_lod(tuple(lod[-1]), is_reverse)
    previous = BUFFERS.take((count, size))
    previous[steps.begin] = 0 if H0 is None else H0[steps.numbers]
    previous[steps.later] = hidden[steps.previous]
    before = previous[steps.begin]
    d_before, d_h0 = np.zeros(before.shape, np.float32), None
    weights = [w.reshape(size, -1).T for w in np.split(Weight.reshape(-1), [2 * size * size])]
    d, _ = gradients_of_gates(cell, steps, weights, before, gate, steps.taken(Hidden_grad), [d_before], hidden)
    if H0 is not None:
        d_h0 = np.zeros(H0.shape, np.float32)
        d_h0[steps.numbers] = d_before
    d_weights = product(previous.T, d[:, : 2 * size]), product(reset.T, d[:, 2 * size :])
    return {
        "Input@GRAD": steps.put(d, count),
        "H0@GRAD": d_h0,
        "Weight@GRAD": np.concatenate([w.reshape(-1) for w in d_weights]).reshape(size, 3 * size),
        "Bias@GRAD": column_sums(d)[None] if ctx.wants("Bias@GRAD") else None,
    }


@onednn_kernel("lstm")
def lstm(
    Input: Array,
    Weight: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchCellPreAct"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, Bias, H0, C0)):
        return NotImplemented
    states, lod = None, ctx.lod("Input")
    functions = (gate_activation, candidate_activation, cell_activation)
    served = not use_peepholes and all(name in FUNCTIONS for name in functions) and serves()
    if served and lod and _fits(Input, Weight, Bias, 4):
        direction = _LSTM((Weight,), functions)
        states = _states(direction, Input, Bias.reshape(-1), [H0, C0], lod[-1], is_reverse)
    if states is None:
        arrays = {"Input": Input, "Weight": Weight, "Bias": Bias, "H0": H0, "C0": C0}
        states = [*run_reference("lstm", arrays, ctx.attrs, {"Input": [lod]})[:2]]
    # always the same: plans of programs count on which outputs there are
    return *states, None, None
