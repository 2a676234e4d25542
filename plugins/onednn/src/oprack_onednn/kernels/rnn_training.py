"""rnn for training, and its gradient: layers of LSTMs over sequences that are all full.

A direction of a layer is one native call forward, and one for its gradients (lstm.c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS, TRAINING_BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import onednn_kernel

# Products in a step, but for the factor 4, from which on threads share it; where sequences are few, they wake for each.
_SHARED = 1 << 16
_ROWS = 4  # sequences of each thread from which on threads have some of their own
_BLOCK, _TOGETHER, _INNER = 64, 64, 128  # of lstm.c, BLOCK at most
KEPT = 6
"""Numbers that the way back reads of each number of a state: i, f, g, o, c and h."""


class _Lstm(Structure):
    """The struct of lstm.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("steps", "batch", "size", "inputs", "reverse")),
        *((name, c_int64) for name in ("out_step", "out_row", "threads", "by_rows")),
        *((name, c_void_p) for name in ("x", "w_input", "w_state", "bias", "h", "c")),
        *((name, c_void_p) for name in ("packed_input", "packed_state", "sums", "kept", "out")),
        *((name, c_void_p) for name in ("dh", "dc", "d", "dx", "dw_input", "dw_state")),
    )


def _run(
    x: Array, weights: Sequence[Array], reverse: bool, out: Array, back: bool, others: Mapping[str, Array]
) -> None:
    """All steps of a direction. others: arrays of the struct by name, row-major, as native code reads them."""
    assert RUNNER.lstm is not None
    (steps, batch, size), inputs = out.shape, x.shape[2]
    threads = THREAD.max_threads if THREAD.ready() and batch * size * max(size, inputs) >= _SHARED else 1
    wide = 4 * (size + _BLOCK)
    arrays = {
        **others,
        "x": x,
        "w_input": np.ascontiguousarray(weights[0]),
        "w_state": np.ascontiguousarray(weights[1]),
        "packed_input": BUFFERS.take((4 * size * (inputs + _BLOCK) if back else wide * (inputs + 1),)),
        "packed_state": BUFFERS.take((wide * size,)),
        "sums": BUFFERS.take((threads * _INNER * (inputs + size + _BLOCK) if back else wide * (batch + _TOGETHER),)),
        "out": out,
    }
    strides = (stride // FLOAT.itemsize for stride in out.strides[:2])
    by_rows = threads == 1 or batch >= _ROWS * threads
    pointers = {name: address(a) for name, a in arrays.items()}
    lstm = _Lstm(steps, batch, size, inputs, reverse, *strides, threads, by_rows, **pointers)
    RUNNER.lstm(addressof(lstm), back)


@dataclass(frozen=True)
class Gradients:
    """Gradients of a direction of a layer; those of both biases are one array."""

    x: Array
    w_input: Array
    w_state: Array
    bias: Array
    h: Array
    c: Array


def forward(
    x: Array, weights: Sequence[Array], h: Array, c: Array, reverse: bool, out: Array, kept: Array
) -> tuple[Array, Array]:
    """The last h and c of x [steps, batch, inputs].

    Args:
        x: The input, row-major.
        weights: W_ih, W_hh, b_ih and b_hh.
        h: Its initial state, [batch, size].
        c: The same of the cell.
        reverse: Whether the last step is the first one.
        out: Gets h of each step, [steps, batch, size]; its rows may be parts of longer ones.
        kept: Gets what the way back reads, [steps, batch, KEPT size], row-major.
    """
    *_, b_input, b_state = weights
    states = {"h": np.ascontiguousarray(h), "c": np.ascontiguousarray(c)}
    _run(x, weights, reverse, out, False, {**states, "bias": b_input + b_state, "kept": kept})
    last, size = 0 if reverse else len(x) - 1, h.shape[1]
    return out[last].copy(), kept[last, :, 4 * size : 5 * size].copy()


def backward(
    x: Array,
    weights: Sequence[Array],
    h: Array,
    c: Array,
    reverse: bool,
    kept: Array,
    d_out: Array,
    dh: Array,
    dc: Array,
) -> Gradients:
    """The gradients, given those of out and of the last states; arguments as those of `forward`."""
    d = BUFFERS.take((*x.shape[:2], 4 * h.shape[1]))
    found = Gradients(
        BUFFERS.take(x.shape),
        TRAINING_BUFFERS.take(weights[0].shape),
        TRAINING_BUFFERS.take(weights[1].shape),
        np.empty(weights[2].shape, FLOAT),
        np.array(dh, order="C"),
        np.array(dc, order="C"),
    )
    made = {"dx": found.x, "dw_input": found.w_input, "dw_state": found.w_state, "dh": found.h, "dc": found.c, "d": d}
    states = {"h": np.ascontiguousarray(h), "c": np.ascontiguousarray(c)}
    _run(x, weights, reverse, d_out, True, {**states, **made, "kept": kept})
    d.reshape(-1, d.shape[2]).sum(axis=0, out=found.bias)
    return found


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
    if mode != "LSTM" or (dropout and layers > 1) or RUNNER.lstm is None or not LIBRARY.usable():
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
            h, c = (s[k] for s in states)
            after[0][k], after[1][k] = forward(x, weights_of(weights, k), h, c, d == 1, out[:, :, columns], reserve[k])
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
