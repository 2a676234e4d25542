"""Cases of rnn."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from ._walk import ACTIVATIONS, SIZE, small


def rnn_rows(x: np.ndarray, h: np.ndarray, weights: list[np.ndarray], mode: str, order: range) -> Any:
    """One direction over one sequence [T, I]: (states [T, H], last state)."""
    w_ih, w_hh, b_ih, b_hh = weights
    sigmoid = ACTIVATIONS["sigmoid"]
    out, c = np.zeros((len(x), SIZE)), h[1] if mode == "LSTM" else None
    h = h[0]
    for t in order:
        a, b = x[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if mode == "LSTM":
            i, f, g, o = np.split(a + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif mode == "GRU":
            (a_r, a_z, a_n), (b_r, b_z, b_n) = np.split(a, 3), np.split(b, 3)
            z = sigmoid(a_z + b_z)
            h = (1 - z) * np.tanh(a_n + sigmoid(a_r + b_r) * b_n) + z * h
        else:
            h = ACTIVATIONS["tanh" if mode == "RNN_TANH" else "relu"](a + b)
        out[t] = h
    return out, (h, c) if mode == "LSTM" else (h,)


def rnn(mode: str, lengths: list[int]) -> OpCase:
    """Two layers, two directions."""
    steps, batch, width = 4, 3, 2
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * SIZE
    matrices, biases = [], []
    for layer in range(2):
        for _ in range(2):
            matrices += [small(gates, width if layer == 0 else 2 * SIZE), small(gates, SIZE)]
            biases += [small(gates), small(gates)]
    x = small(steps, batch, width)
    first = [small(4, batch, SIZE) for _ in range(2 if mode == "LSTM" else 1)]
    out, last = x, [s.copy() for s in first]
    for layer in range(2):
        below, out = out, np.zeros((steps, batch, 2 * SIZE))
        for direction in range(2):
            k = 2 * layer + direction
            weights = [*matrices[2 * k : 2 * k + 2], *biases[2 * k : 2 * k + 2]]
            for b, length in enumerate(lengths):
                order = range(length) if direction == 0 else range(length - 1, -1, -1)
                states = [s[k, b] for s in first]
                rows, ended = rnn_rows(below[:length, b], states, weights, mode, order)
                out[:length, b, direction * SIZE : (direction + 1) * SIZE] = rows
                for s, value in zip(last, ended, strict=True):
                    s[k, b] = value
    inputs = {
        "Input": x.astype(np.float32),
        "PreState": [s.astype(np.float32) for s in first],
        "WeightList": [w.astype(np.float32) for w in matrices + biases],
        "SequenceLength": np.array(lengths, np.int32),
    }
    attrs = {"mode": mode, "is_bidirec": True, "num_layers": 2, "input_size": width, "hidden_size": SIZE}
    outputs = {"Out": out.astype(np.float32), "State": [s.astype(np.float32) for s in last]}
    return OpCase("rnn", inputs, attrs, outputs, name=f"{mode} {lengths}")


CASES = [
    rnn(mode, lengths)
    for mode in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")
    for lengths in ([0, 4, 2], [4, 0, 3], [1, 4, 0], [0, 0, 0])
]
