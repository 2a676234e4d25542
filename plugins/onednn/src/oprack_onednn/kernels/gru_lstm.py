"""gru and lstm with constant weights, not fused with the product in front.

Their input holds the products with it already, and what only their gradients read is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants, is_constant
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._recurrent import FUNCTIONS, Cell, Direction, order_of, serves, walk
from oprack_onednn.kernels._steps import run_reference
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.kernels.fc_recurrent import LSTM_GATES, gru_weights, lstm_weights


def _gru_direction(arrays: tuple[Array, ...], functions: tuple[str, str, str], origin_mode: bool) -> Direction:
    return Direction(Cell("gru", functions, origin_mode), gru_weights(arrays[0]))


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
) -> list[Array] | None:
    """Every row's states; None where native code does not serve them.

    Args:
        direction: The weights.
        x: [N, gates size].
        bias: gates size numbers, or None.
        before: Of each state what it begins with, [number of sequences, size], or None for zeros.
        offsets: Of the sequences.
        is_reverse: Whether they are walked from their last row on.
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
    walk([direction], [is_reverse], x, order, found[0], out_c=found[1] if len(found) > 1 else None, before=[before])
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
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchResetHiddenPrev", "BatchHidden"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, H0, Bias)):
        return NotImplemented
    states, lod = None, ctx.lod("Input")
    served = activation in FUNCTIONS and gate_activation in FUNCTIONS and serves()
    if served and lod and _fits(Input, Weight, Bias, 3):
        direction = _GRU((Weight,), (gate_activation, activation, "identity"), origin_mode)
        states = _states(direction, Input, None if Bias is None else Bias.reshape(-1), [H0], lod[-1], is_reverse)
    if states is None:
        arrays = {"Input": Input, "Weight": Weight, "H0": H0, "Bias": Bias}
        # What native code does not serve is computed here rather than declined, so that the outputs are the same ones.
        states = [run_reference("gru", arrays, ctx.attrs, {"Input": [lod]})[3]]
    # always the same: plans of programs count on which outputs there are
    return None, None, None, states[0]


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
