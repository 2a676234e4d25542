"""The gradient of rnn: layers of LSTMs over sequences that are all full.

The way back through a direction's steps is a native call (lstm.c); what remains are products of matrices (dense.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels._dense import COLUMN_SUMS, loop, multiply
from oprack_onednn.kernels._recurrent import packed
from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.kernels.rnn import KEPT, fits, is_trained

_ROWS = 4  # sequences that a thread has at least


class _Lstm(Structure):
    """The struct of lstm.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("steps", "batch", "size", "reverse", "out_step", "out_row")),
        *((name, c_void_p) for name in ("w_state", "kept", "c", "out", "dh", "dc", "d")),
    )


def _product(x: Array, y: Array) -> Array:
    found = multiply(x, y, 1.0, (x.shape[0], y.shape[1]))
    return x @ y if found is None else found


def _backward(
    x: Array,
    weights: Sequence[Array],
    states: Sequence[Array],
    reverse: bool,
    kept: Array,
    d_out: Array,
    d_states: Sequence[Array],
) -> list[Array]:
    """The gradients of a direction of a layer.

    Args:
        x: Its input, [steps, batch, inputs], row-major.
        weights: W_ih and W_hh.
        states: h and c before the first step, [batch, size].
        reverse: Whether the last step is the first one.
        kept: What the way forward kept, [steps, batch, KEPT size], row-major.
        d_out: The gradients of h of each step, [steps, batch, size]; its rows may be parts of longer ones.
        d_states: Those of h and c after the last step, row-major; they get those before the first one.

    Returns:
        Those of x, W_ih and W_hh, and of both biases.
    """
    assert RUNNER.lstm_back is not None
    (steps, batch, size), inputs = d_out.shape, x.shape[2]
    d = BUFFERS.take((steps * batch, 4 * size))
    w_state, c = packed(weights[1]), np.ascontiguousarray(states[1])
    strides = (stride // FLOAT.itemsize for stride in d_out.strides[:2])
    arrays = (w_state, kept, c, d_out, *d_states, d)
    lstm = _Lstm(steps, batch, size, reverse, *strides, *map(address, arrays))
    large = 8 * size * size * len(d) >= Limits.apart
    RUNNER.lstm_back(addressof(lstm), min(THREAD.max_threads, max(1, batch // _ROWS)) if large else 1)
    last = (steps - 1) * batch
    first, later = (slice(last, None), slice(last)) if reverse else (slice(batch), slice(batch, None))
    before = kept.reshape(steps * batch, -1)[slice(batch, None) if reverse else slice(last), -size:]
    dw_state = _product(d[first].T, states[0])
    if last:
        dw_state += _product(d[later].T, before)
    bias = loop(COLUMN_SUMS, d)
    return [
        _product(d, weights[0]).reshape(x.shape),
        _product(d.T, x.reshape(-1, inputs)),
        dw_state,
        d.sum(axis=0) if bias is None else bias,
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
    sides, size = 2 if is_bidirec else 1, hidden_size
    steps, batch = Input.shape[:2]
    count = num_layers * sides
    if SequenceLength is not None or Out_grad is None or RUNNER.lstm_back is None or not THREAD.ready():
        return NotImplemented
    if not is_trained(mode, dropout_prob, num_layers) or not fits(Input, PreState, WeightList, (count, batch, size)):
        return NotImplemented
    for k in range(count):
        inputs = Input.shape[2] if k < sides else sides * size
        if [w.shape for w in WeightList[2 * k : 2 * k + 2]] != [(4 * size, inputs), (4 * size, size)]:
            return NotImplemented
    given = [State_grad[i] if i < len(State_grad) else None for i in range(2)]
    if Reserve.shape != (count, steps, batch, KEPT * size) or Out_grad.shape != (steps, batch, sides * size):
        return NotImplemented
    if any(g is not None and g.shape != PreState[0].shape for g in given) or not Reserve.flags.c_contiguous:
        return NotImplemented
    if any(a is not None and (a.dtype != FLOAT or not a.flags.aligned) for a in (Reserve, Out_grad, *given)):
        return NotImplemented
    # copies: the gradients of the states before the first step take their place
    before = [
        np.zeros(s.shape, FLOAT) if g is None else np.array(g, order="C") for s, g in zip(PreState, given, strict=True)
    ]
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
            states, d_states = ([s[k] for s in a] for a in (PreState, before))
            weights = WeightList[2 * k : 2 * k + 2]
            dx, grads[2 * k], grads[2 * k + 1], bias = _backward(
                x, weights, states, k > first, Reserve[k], d_out[:, :, columns], d_states
            )
            below = dx if below is None else np.add(below, dx, out=below)
            grads[2 * (count + k)], grads[2 * (count + k) + 1] = bias, bias.copy()
        assert below is not None
        d_out = below
    return {"Input@GRAD": d_out, "PreState@GRAD": before, "WeightList@GRAD": grads}
