"""The gradient of rnn. The way back through a direction's steps is a native call (recurrent_grad.c)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._recurrent import GATES, KEPT, Cell
from oprack_onednn.kernels._recurrent_grad import Steps, column_sums, gradients_of_gates, padded_steps, product
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.kernels.rnn import RNN_CELLS, fits, is_trained, lengths_of


def _backward(
    cell: Cell,
    x: Array,
    weights: Sequence[Array],
    states: Sequence[Array],
    steps: Steps,
    kept: Array,
    d_out: Array,
    d_states: Sequence[Array],
) -> list[Array]:
    """The gradients of a direction of a layer.

    Args:
        cell: What a step computes.
        x: Its input, [rows, inputs], row-major.
        weights: W_ih and W_hh.
        states: h, and c of an LSTM, before the first step, [batch, size].
        steps: The rows that are walked.
        kept: What the way forward kept, [rows, KEPT size], row-major.
        d_out: The gradients of each row's h, [rows, size]; rows may be parts of longer ones.
        d_states: Those of the states after the last step, row-major; they get those before the first one.

    Returns:
        Those of x, W_ih, W_hh and both biases.
    """
    count, size = d_out.shape
    x, kept, d_out = (steps.taken(a) for a in (x, kept, d_out))
    numbers = slice(None) if steps.numbers is None else steps.numbers
    states, walked = [s[numbers] for s in states], [s[numbers] for s in d_states]
    d, d_state = gradients_of_gates(cell, steps, weights[1:], states[-1], kept, d_out, walked)
    if steps.numbers is not None:
        for target, source in zip(d_states, walked, strict=True):
            target[numbers] = source
    w_state = product(d_state[steps.begin].T, states[0])
    if len(steps.counts) > 1:
        w_state += product(d_state[steps.later].T, kept[steps.previous, -size:])
    bias = column_sums(d)
    return [
        steps.put(product(d, weights[0]), count),
        product(d.T, x),
        w_state,
        bias,
        bias.copy() if d is d_state else column_sums(d_state),
    ]


@onednn_kernel("rnn_grad", unread=("SequenceLength", "DropoutState"))
def rnn_grad(
    Input: Array,
    PreState: list[Array],
    WeightList: list[Array],
    Reserve: Array,
    Out_grad: Array,
    State_grad: list[Array],
    SequenceLength: Array | None = None,
    DropoutState: Array | None = None,
    *,
    dropout_prob: float,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
) -> dict[str, Array | list[Array]]:
    sides, cell = 2 if is_bidirec else 1, RNN_CELLS[mode]
    (steps, batch, _), count, size = Input.shape, num_layers * sides, hidden_size
    if Out_grad is None or RUNNER.recurrent_grad is None or not is_trained(dropout_prob, num_layers):
        return NotImplemented
    lengths = lengths_of(SequenceLength, steps, batch)
    given = [State_grad[i] if i < len(State_grad) else None for i in range(len(PreState))]
    if lengths is None or not lengths.any() or len(given) != 1 + (mode == "LSTM") or not THREAD.ready():
        return NotImplemented
    if not _all_fit(cell, sides, Input, PreState, WeightList, Reserve, [Out_grad, *given], (count, batch, size)):
        return NotImplemented
    walks = [padded_steps(lengths, steps, reverse) for reverse in (False, True)[:sides]]
    # copies: the gradients of the states before the first step take their place
    before = [
        np.zeros(s.shape, FLOAT) if g is None else np.array(g, order="C") for s, g in zip(PreState, given, strict=True)
    ]
    grads: list[Array] = [Input] * len(WeightList)
    d_out = np.ascontiguousarray(Out_grad).reshape(steps * batch, -1)
    for first in range(count - sides, -1, -sides):
        # what the layer below returned is its h
        x = np.ascontiguousarray(Input)
        if first:
            x = np.concatenate(list(Reserve[first - sides : first, :, :, -size:]), axis=2)
        x, below = x.reshape(steps * batch, -1), None
        for k in range(first, first + sides):
            columns = slice((k - first) * size, (k - first + 1) * size)
            states, d_states = ([s[k] for s in a] for a in (PreState, before))
            kept, weights = Reserve[k].reshape(steps * batch, -1), WeightList[2 * k : 2 * k + 2]
            dx, *of_weights = _backward(cell, x, weights, states, walks[k - first], kept, d_out[:, columns], d_states)
            grads[2 * k : 2 * k + 2], grads[2 * (count + k) : 2 * (count + k) + 2] = of_weights[:2], of_weights[2:]
            below = dx if below is None else np.add(below, dx, out=below)
        assert below is not None
        d_out = below
    return {"Input@GRAD": d_out.reshape(Input.shape), "PreState@GRAD": before, "WeightList@GRAD": grads}


def _all_fit(
    cell: Cell,
    sides: int,
    x: Array,
    states: Sequence[Array],
    weights: Sequence[Array],
    kept: Array,
    gradients: Sequence[Array | None],
    shape: tuple[int, int, int],
) -> bool:
    """Whether all arrays are those of layers with states of this shape; gradients: of h of each row, and of states."""
    (steps, batch, inputs), (count, _, size), wide = x.shape, shape, GATES[cell.kind] * shape[2]
    if not fits(x, states, weights, shape):
        return False
    for k in range(count):
        width = inputs if k < sides else sides * size
        if [w.shape for w in weights[2 * k : 2 * k + 2]] != [(wide, width), (wide, size)]:
            return False
    if kept.shape != (count, steps, batch, KEPT[cell.kind] * size) or not kept.flags.c_contiguous:
        return False
    for gradient, expected in zip(gradients, [(steps, batch, sides * size), *[shape] * len(states)], strict=True):
        if gradient is not None and gradient.shape != expected:
            return False
    return all(a is None or (a.dtype == FLOAT and a.flags.aligned) for a in (kept, *gradients))
