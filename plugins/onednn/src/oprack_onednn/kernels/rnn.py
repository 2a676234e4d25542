"""rnn: for inference a layer of the stack, with both directions, is one primitive where all sequences are full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array

from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.dnnl.operands import FLOAT, OperandError
from oprack_onednn.kernels._order import Order
from oprack_onednn.kernels._recurrent import Layer, apart_in_pool, directions_apart, equal_steps, packed_steps
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.kernels.rnn_training import training

_CELLS = {"LSTM": "lstm", "GRU": "lbr_gru", "RNN_RELU": "relu", "RNN_TANH": "tanh"}
_GATES = {"LSTM": [0, 1, 2, 3], "GRU": [1, 0, 2], "RNN_RELU": [0], "RNN_TANH": [0]}  # in oneDNN's order


def rnn_layer(arrays: Sequence[Array], mode: str) -> Layer:
    """From W_ih, W_hh, b_ih and b_hh of one direction after the other."""
    order, size = _GATES[mode], arrays[1].shape[-1]
    for w_input, w_state, *biases in zip(*(arrays[i::4] for i in range(4)), strict=True):
        rows = len(order) * size
        shapes = [w_input.shape[:1], w_state.shape, *(b.shape for b in biases)]
        if w_input.ndim != 2 or shapes != [(rows,), (rows, size), (rows,), (rows,)]:
            raise OperandError(f"weights of {mode} have shapes {shapes}")

    def stacked(matrices: Sequence[Array]) -> Array:
        return np.stack([w.reshape(len(order), size, -1)[order].transpose(2, 0, 1) for w in matrices])

    b_input, b_state = (np.stack([b.reshape(-1, size)[order] for b in arrays[i::4]]) for i in (2, 3))
    bias = b_input + b_state
    if mode == "GRU":
        # what is added to h's part of the candidate lies within the product with the reset gate
        bias = np.concatenate([bias[:, :2], b_input[:, 2:], b_state[:, 2:]], axis=1)
    return Layer(_CELLS[mode], stacked(arrays[0::4]), stacked(arrays[1::4]), bias)


_LAYERS = FromConstants(rnn_layer)


@onednn_kernel("rnn", unread=("SequenceLength",))
def rnn(
    Input: Array,
    PreState: list[Array],
    WeightList: list[Array],
    SequenceLength: Array | None = None,
    *,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
    dropout_prob: float,
    is_test: bool,
) -> dict[str, Array | list[Array] | None]:
    steps, batch = Input.shape[:2]
    sides = 2 if is_bidirec else 1
    if not is_test:
        if SequenceLength is not None:
            return NotImplemented
        return training(Input, PreState, WeightList, mode, dropout_prob, sides, num_layers, hidden_size)
    if not _fits(Input, PreState, WeightList, (num_layers * sides, batch, hidden_size)):
        return NotImplemented
    order = None
    if SequenceLength is not None:
        lengths = _lengths(SequenceLength, steps, batch)
        if lengths is None:
            return NotImplemented
        order = None if (lengths == steps).all() else Order(lengths, np.arange(batch), batch)
    # Copies: chains write the last states there, and the op's inputs stay as they are.
    after = [np.array(s, order="C") for s in PreState]
    before = [s.copy() for s in after]
    x = np.ascontiguousarray(Input)
    for first in range(0, num_layers * sides, sides):
        layer = _LAYERS(_parameters(WeightList, first, sides), mode)
        if (layer.inputs, layer.size) != (x.shape[2], hidden_size):
            return NotImplemented
        own = slice(first, first + sides)
        y = _layer(layer, x, order, [s[own] for s in before], [s[own] for s in after])
        if y is None:
            return NotImplemented
        x = y
    return {"Out": x, "DropoutState": None, "State": after, "Reserve": None}


def _fits(
    x: np.ndarray, states: Sequence[np.ndarray], weights: Sequence[np.ndarray], shape: tuple[int, int, int]
) -> bool:
    """Whether all is float32, states have the shape and there are four weights for each direction of a layer."""
    if not x.size or any(a.dtype != FLOAT for a in (x, *states, *weights)):
        return False
    return len(weights) == 4 * shape[0] and all(s.shape == shape for s in states)


def _lengths(given: np.ndarray, steps: int, batch: int) -> np.ndarray | None:
    """How many steps each sequence has; None when the numbers are out of range."""
    lengths = given.reshape(-1).astype(np.int64)
    right = len(lengths) == batch and not ((lengths < 0) | (lengths > steps)).any()
    return lengths if right else None


def _parameters(weights: Sequence[np.ndarray], first: int, sides: int) -> list[np.ndarray]:
    """W_ih, W_hh, b_ih and b_hh of each direction of a layer; WeightList has the weights of all layers, then biases."""
    biases = weights[len(weights) // 2 :]
    directions = range(first, first + sides)
    return [a for k in directions for a in (*weights[2 * k : 2 * k + 2], *biases[2 * k : 2 * k + 2])]


def _layer(
    layer: Layer,
    x: np.ndarray,
    order: Order | None,
    before: Sequence[np.ndarray],
    after: Sequence[np.ndarray],
) -> np.ndarray | None:
    """The output of a layer, whose last states go to `after`; None when oneDNN does not serve it."""
    steps, batch = x.shape[:2]
    out = np.empty((steps, batch, layer.directions * layer.size), np.float32)
    alone = directions_apart(layer, steps * batch) and not apart_in_pool(layer, steps * batch, steps)
    if order is None and alone:
        order = Order(np.full(batch, steps), np.arange(batch), batch)
    if order is None:
        done = equal_steps(layer, x, steps, batch, 3 if layer.directions == 2 else 1, out, before, after)
    else:
        done = _padded(layer, x, order, before, after, out)
    return out if done else None


def _padded(layer: Layer, x: Array, order: Order, before: Sequence[Array], after: Sequence[Array], out: Array) -> bool:
    """A layer over sequences that are not all full; False when oneDNN does not serve it."""
    sides = layer.directions
    states = packed_steps(layer, x.reshape(-1, layer.inputs), order, (False, True)[:sides], before)
    if states is None:
        return False
    out.fill(0)
    rows = out.reshape(-1, sides, layer.size)
    for d in range(sides):
        rows[order.rows(d == 1), d] = states[0][d, : order.total]
        for state, found in zip(after, states, strict=True):
            state[d, order.order] = found[d, order.last]
    return True
