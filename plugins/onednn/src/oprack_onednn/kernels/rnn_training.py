"""rnn for training, and its gradient: layers of LSTMs over sequences that are all full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._lstm import KEPT, backward, forward
from oprack_onednn.kernels.declare import onednn_kernel


def weights_of(weights: Sequence[Array], k: int) -> list[Array]:
    """W_ih, W_hh, b_ih and b_hh of direction k of all layers."""
    half = len(weights) // 2
    return [weights[2 * k], weights[2 * k + 1], weights[half + 2 * k], weights[half + 2 * k + 1]]


def _serves(
    x: Array,
    states: Sequence[Array],
    weights: Sequence[Array],
    mode: str,
    dropout: float,
    sides: int,
    layers: int,
    size: int,
) -> bool:
    """Whether it is an LSTM without dropout between layers whose arrays have the shapes that native code reads."""
    if mode != "LSTM" or (dropout and layers > 1) or RUNNER.lstm_step is None or not LIBRARY.usable():
        return False
    if any(not a.size or a.dtype != FLOAT or not a.flags.aligned for a in (x, *states, *weights)):
        return False
    count = layers * sides
    if x.ndim != 3 or len(weights) != 4 * count or [s.shape for s in states] != [(count, x.shape[1], size)] * 2:
        return False
    for k in range(count):
        inputs = x.shape[2] if k < sides else sides * size
        shapes = [w.shape for w in weights_of(weights, k)]
        if shapes != [(4 * size, inputs), (4 * size, size), (4 * size,), (4 * size,)]:
            return False
    return True


def training(
    x: Array,
    states: Sequence[Array],
    weights: Sequence[Array],
    mode: str,
    dropout: float,
    sides: int,
    layers: int,
    size: int,
) -> dict[str, Array | list[Array] | None]:
    """The outputs of rnn; NotImplemented where NumPy has to do it."""
    if not _serves(x, states, weights, mode, dropout, sides, layers, size):
        return NotImplemented
    x, (steps, batch) = np.ascontiguousarray(x), x.shape[:2]
    reserve = BUFFERS.take((layers * sides, steps, batch, KEPT * size))
    after = [np.empty_like(s) for s in states]
    for first in range(0, layers * sides, sides):
        out = BUFFERS.take((steps, batch, sides * size))
        for d in range(sides):
            k, columns = first + d, slice(d * size, (d + 1) * size)
            before = (s[k] for s in states)
            after[0][k], after[1][k] = forward(
                x, weights_of(weights, k), *before, d == 1, out[:, :, columns], reserve[k]
            )
        x = out
    mask = np.ones((steps, batch, sides * size), np.uint8)
    return {"Out": x, "DropoutState": mask, "State": after, "Reserve": reserve}


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
    sides, size = 2 if is_bidirec else 1, hidden_size
    steps, batch = Input.shape[:2]
    served = _serves(Input, PreState, WeightList, mode, dropout_prob, sides, num_layers, size)
    if not served or SequenceLength is not None or Out_grad is None:
        return NotImplemented
    count = num_layers * sides
    given = [State_grad[i] if i < len(State_grad) else None for i in range(2)]
    if Reserve.shape != (count, steps, batch, KEPT * size) or Out_grad.shape != (steps, batch, sides * size):
        return NotImplemented
    if any(g is not None and g.shape != PreState[0].shape for g in given) or not Reserve.flags.c_contiguous:
        return NotImplemented
    if any(a is not None and (a.dtype != FLOAT or not a.flags.aligned) for a in (Reserve, Out_grad, *given)):
        return NotImplemented
    after = [np.zeros_like(s) if g is None else g for s, g in zip(PreState, given, strict=True)]
    before = [np.empty_like(s) for s in PreState]
    grads: list[Array] = [Input] * len(WeightList)
    d_out = np.ascontiguousarray(Out_grad)
    for first in range(count - sides, -1, -sides):
        # what the layer below returned is its h
        x = (
            np.ascontiguousarray(Input)
            if not first
            else np.concatenate(list(Reserve[first - sides : first, :, :, -size:]), axis=2)
        )
        below = None
        for k in range(first, first + sides):
            columns = slice((k - first) * size, (k - first + 1) * size)
            states = [*(s[k] for s in PreState), k > first, Reserve[k], d_out[:, :, columns], *(s[k] for s in after)]
            g = backward(x, weights_of(WeightList, k), *states)
            below = g.x if below is None else np.add(below, g.x, out=below)
            grads[2 * k], grads[2 * k + 1] = g.w_input, g.w_state
            grads[2 * count + 2 * k], grads[2 * count + 2 * k + 1] = g.bias, g.bias.copy()
            before[0][k], before[1][k] = g.h, g.c
        assert below is not None
        d_out = below
    return {"Input@GRAD": d_out, "PreState@GRAD": before, "WeightList@GRAD": grads}
