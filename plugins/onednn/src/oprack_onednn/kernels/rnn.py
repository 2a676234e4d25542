"""rnn: a layer of the stack, with both directions, is a native call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, decline

from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, OperandError
from oprack_onednn.kernels._recurrent import KEPT, Cell, Direction, Order, serves, walk
from oprack_onednn.kernels.declare import onednn_kernel

RNN_CELLS = {
    "LSTM": Cell("lstm"),
    "GRU": Cell("lbr_gru", origin=True),
    "RNN_RELU": Cell("rnn", ("identity", "relu", "identity")),
    "RNN_TANH": Cell("rnn"),
}
"""By the op's mode."""
_GATES: dict[str, slice | list[int]] = {"LSTM": slice(4), "GRU": [1, 0, 2], "RNN_RELU": slice(1), "RNN_TANH": slice(1)}
"""The op's gates in the order of `Cell`."""


def rnn_layer(arrays: Sequence[Array], mode: str) -> list[Direction]:
    """From W_ih, W_hh, b_ih and b_hh of one direction after the other."""
    order, found = _GATES[mode], []
    for w_input, w_state, b_input, b_state in zip(*(arrays[i::4] for i in range(4)), strict=True):
        size, gates = w_state.shape[-1], len(range(4)[order]) if isinstance(order, slice) else len(order)
        rows = gates * size
        shapes = [w_input.shape[:1], w_state.shape, b_input.shape, b_state.shape]
        if w_input.ndim != 2 or shapes != [(rows,), (rows, size), (rows,), (rows,)]:
            raise OperandError(f"weights of {mode} have shapes {shapes}")
        of_input, of_state = (w.reshape(gates, size, w.shape[1])[order] for w in (w_input, w_state))
        bias, of_candidate = b_input + b_state, None
        if mode == "GRU":
            # what is added to h's part of the candidate lies within the product with the reset gate
            bias, of_candidate = b_input.copy(), b_state[2 * size :]
            bias[: 2 * size] += b_state[: 2 * size]
        found.append(
            Direction(
                RNN_CELLS[mode],
                of_state.transpose(2, 0, 1),
                of_input.reshape(rows, -1).T,
                bias.reshape(-1, size)[order].reshape(-1),
                of_candidate,
            )
        )
    return found


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
    if not is_test and not is_trained(dropout_prob, num_layers):
        return NotImplemented
    if not fits(Input, PreState, WeightList, (num_layers * sides, batch, hidden_size)):
        return NotImplemented
    lengths = lengths_of(SequenceLength, steps, batch)
    if lengths is None or not serves() or not THREAD.ready():
        return NotImplemented
    try:
        layers = [_LAYERS(_parameters(WeightList, first, sides), mode) for first in range(0, num_layers * sides, sides)]
    except OperandError as error:
        return decline(str(error))
    widths = [Input.shape[2], *[sides * hidden_size] * (num_layers - 1)]
    if [(d.inputs, d.size) for layer in layers for d in layer] != [
        (w, hidden_size) for w in widths for _ in range(sides)
    ]:
        return NotImplemented
    # Copies: last states go there, and the op's inputs stay as they are.
    after = [np.array(s, order="C") for s in PreState]
    order = Order(np.arange(batch), lengths, batch)
    width = KEPT[RNN_CELLS[mode].kind] * hidden_size
    reserve: Array | None = None if is_test else BUFFERS.take((num_layers * sides, steps * batch, width))
    if reserve is not None and (lengths < steps).any():
        reserve.fill(0)
    x = np.ascontiguousarray(Input).reshape(steps * batch, -1)
    for k, layer in enumerate(layers):
        own = range(k * sides, (k + 1) * sides)
        out = BUFFERS.take((steps * batch, sides * hidden_size))
        if (lengths < steps).any():
            out.fill(0)
        states = [[s[d] for s in after] for d in own]
        before = [[s[d] for s in PreState] for d in own]
        kept = None if reserve is None else reserve[own.start : own.stop]
        walk(layer, (False, True)[:sides], x, order, out, kept=kept, before=before, after=states)
        x = out
    mask = None
    if reserve is not None:
        mask = np.ones((steps, batch, sides * hidden_size), np.uint8)
        reserve = reserve.reshape((-1, steps, batch, width))
    return {"Out": x.reshape(steps, batch, -1), "DropoutState": mask, "State": after, "Reserve": reserve}


def is_trained(dropout: float, layers: int) -> bool:
    """Whether native code serves these attributes in training."""
    return not dropout or layers == 1


def fits(
    x: np.ndarray, states: Sequence[np.ndarray], weights: Sequence[np.ndarray], shape: tuple[int, int, int]
) -> bool:
    """Whether all is aligned float32, states have the shape, and each direction of a layer has four weights."""
    if not x.size or any(a.dtype != FLOAT or not a.flags.aligned for a in (x, *states, *weights)):
        return False
    return len(weights) == 4 * shape[0] and all(s.shape == shape for s in states)


def lengths_of(given: np.ndarray | None, steps: int, batch: int) -> np.ndarray | None:
    """How many steps each sequence has: all, if nothing is given; None when the numbers are out of range."""
    if given is None:
        return np.full(batch, steps)
    lengths = given.reshape(-1).astype(np.int64)
    right = len(lengths) == batch and not ((lengths < 0) | (lengths > steps)).any()
    return lengths if right else None


def _parameters(weights: Sequence[np.ndarray], first: int, sides: int) -> list[np.ndarray]:
    """W_ih, W_hh, b_ih and b_hh of each direction of a layer; WeightList has the weights of all layers, then biases."""
    biases = weights[len(weights) // 2 :]
    directions = range(first, first + sides)
    return [a for k in directions for a in (*weights[2 * k : 2 * k + 2], *biases[2 * k : 2 * k + 2])]
