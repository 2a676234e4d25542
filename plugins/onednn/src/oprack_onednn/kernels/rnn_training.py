"""rnn for training, and its gradient: layers of LSTMs over sequences that are all full.

A direction of a layer is products, and between them one native call for each step (lstm.c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import element_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.kernels.matmul import product

# Numbers of a state from which on threads share the rest of a step, which takes some 4 ns for each.
_SHARED = 2048
KEPT = 6
"""Numbers that the way back reads of each number of a state: i, f, g, o, c and h."""


class _Step(Structure):
    """The struct of lstm.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("batch", "size", "before_row", "out_row", "threads")),
        *((name, c_void_p) for name in ("gates", "recurrent", "before", "kept", "out", "dh", "dc", "d")),
    )


class _Packed:
    """The product of rows [n, k] with a matrix [k, m] that is packed for all steps."""

    def __init__(self, rows: int, shape: tuple[int, int], strides: tuple[int, ...]) -> None:
        source, result = MemoryDesc.strided((rows, shape[0])), MemoryDesc.strided((rows, shape[1]))
        arguments = (LIBRARY.engine, source, MemoryDesc.any(shape), None, result, Attributes())
        desc = primitive_desc("matmul", *arguments)
        layout = desc.desc(_c.QUERY_WEIGHTS_MD)
        self.packing, self.chain, self.size = PrimitiveChain(), PrimitiveChain(), layout.nbytes // FLOAT.itemsize
        self.packing.reorder(self.packing.input(MemoryDesc.strided(shape, strides)), self.packing.output(layout))
        memory = {_c.SRC: self.chain.input(source), _c.WEIGHTS: self.chain.input(layout)}
        self.chain.add(desc, memory | {_c.DST: self.chain.output(result)})


def _times_matrix(rows: int, w: Array) -> Callable[[Array, Array], object]:
    """A function of x [rows, k] and a result [rows, m] that multiplies by w [k, m], as it is now."""
    found = None
    if all(stride > 0 for stride in w.strides):  # no primitive reads backwards, or one element again and again
        strides = element_strides(w)
        found = THREAD.primitive(("lstm_product", rows, w.shape, strides), _Packed, rows, w.shape, strides)
    if found is None:
        return lambda x, out: np.matmul(x, w, out=out)
    packed = BUFFERS.take((found.size,))
    found.packing.run(w, packed)
    run = found.chain.run
    return lambda x, out: run(x, packed, out)


def _product(x: Array, y: Array) -> Array:
    """The product of two matrices."""
    found = product(x, y)
    return np.matmul(x, y) if found is None else found


@dataclass(frozen=True)
class Gradients:
    """Gradients of a direction of a layer; those of both biases are one array."""

    x: Array
    w_input: Array
    w_state: Array
    bias: Array
    h: Array
    c: Array


def _threads(h: Array) -> int:
    """Threads that share a step of states like h."""
    return THREAD.max_threads if THREAD.ready() and h.size >= _SHARED else 1


def _times(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def forward(
    x: Array, weights: Sequence[Array], h: Array, c: Array, reverse: bool, out: Array, kept: Array
) -> tuple[Array, Array]:
    """The last h and c of x [steps, batch, inputs].

    Args:
        x: The input.
        weights: W_ih, W_hh, b_ih and b_hh.
        h: Its initial state, [batch, size].
        c: The same of the cell.
        reverse: Whether the last step is the first one.
        out: Gets h of each step, [steps, batch, size]; its rows may be parts of longer ones.
        kept: Gets what the way back reads, [steps, batch, KEPT size], row-major.
    """
    assert RUNNER.lstm_step is not None
    w_input, w_state, b_input, b_state = weights
    (steps, batch, inputs), size = x.shape, h.shape[1]
    gates = _product(x.reshape(-1, inputs), w_input.T)
    gates += b_input + b_state
    recurrent, multiply = BUFFERS.take((batch, 4 * size)), _times_matrix(batch, w_state.T)
    # row-major, as native code reads them
    h, c = np.ascontiguousarray(h), np.ascontiguousarray(c)
    across = out.strides[1] // FLOAT.itemsize
    step = _Step(batch, size, size, across, _threads(h), 0, address(recurrent), address(c))
    pointer, run = addressof(step), RUNNER.lstm_step
    first, rows, of_out, of_kept = address(gates), gates.strides[0] * batch, address(out), address(kept)
    for t in _times(steps, reverse):
        multiply(h, recurrent)
        step.gates, step.out, step.kept = first + t * rows, of_out + t * out.strides[0], of_kept + t * kept.strides[0]
        run(pointer, 0)
        h = out[t] if out[t].flags.c_contiguous else np.ascontiguousarray(out[t])
        # c of this step, which lies in a row behind the four gates
        step.before, step.before_row = step.kept + 4 * size * FLOAT.itemsize, KEPT * size
    last = _times(steps, reverse)[-1]
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
    assert RUNNER.lstm_step is not None
    w_input, w_state, *_ = weights
    (steps, batch, inputs), size = x.shape, h.shape[1]
    d = BUFFERS.take((steps, batch, 4 * size))
    dh, dc = np.array(dh, order="C"), np.array(dc, order="C")
    c = np.ascontiguousarray(c)
    across = d_out.strides[1] // FLOAT.itemsize
    step = _Step(batch, size, KEPT * size, across, _threads(dh), dh=address(dh), dc=address(dc))
    pointer, run = addressof(step), RUNNER.lstm_step
    of_d, of_out, of_kept = address(d), address(d_out), address(kept)
    times, multiply = _times(steps, reverse), _times_matrix(batch, w_state)
    for k in range(steps - 1, -1, -1):
        t = times[k]
        step.kept, step.out, step.d = (
            of_kept + t * kept.strides[0],
            of_out + t * d_out.strides[0],
            of_d + t * d.strides[0],
        )
        if k:
            step.before = of_kept + times[k - 1] * kept.strides[0] + 4 * size * FLOAT.itemsize
        else:
            step.before, step.before_row = address(c), size
        run(pointer, 1)
        multiply(d[t], dh)
    rows, before = d.reshape(-1, 4 * size), BUFFERS.take((steps, batch, size))
    before[times[0]] = h
    if steps > 1:
        # h of the step before, whichever comes first in memory
        later, earlier = (slice(None, -1), slice(1, None)) if reverse else (slice(1, None), slice(None, -1))
        before[later] = kept[earlier, :, 5 * size :]
    return Gradients(
        _product(rows, w_input).reshape(x.shape),
        _product(rows.T, x.reshape(-1, inputs)),
        _product(rows.T, before.reshape(-1, size)),
        rows.sum(axis=0),
        dh,
        dc,
    )


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
