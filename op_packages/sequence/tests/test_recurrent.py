"""Recurrent ops against their definitions, one row after the other, with empty sequences at every place."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase
from oprack_sequence.kernels.recurrent.gru import gru, gru_grad
from oprack_sequence.kernels.recurrent.lstm import lstm, lstm_grad
from oprack_sequence.kernels.recurrent.lstmp import lstmp, lstmp_grad

LENGTHS = {
    "first": [0, 3, 2],
    "middle": [3, 0, 2],
    "last": [3, 2, 0],
    "several": [0, 0, 2, 0, 4, 0],
    "only": [0, 0, 0],
    "no sequence": [],
}
SIZE = 3
ACTIVATIONS = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}
rng = np.random.default_rng(11)
lengths_of_every_kind = pytest.mark.parametrize("n", LENGTHS.values(), ids=LENGTHS)
both_ways = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def random(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape) * 0.5


def float32(inputs: dict[str, Any], n: list[int]) -> dict[str, Any]:
    """Inputs of a program: Input gets the LoD."""
    values: dict[str, Any] = {k: v.astype(np.float32) for k, v in inputs.items()}
    values["Input"] = LoDTensor(values["Input"], lod_from_lengths([n]))
    return values


def walk(n: list[int], reverse: bool) -> list[list[int]]:
    """Rows of each sequence, in the order in which they are walked through."""
    ends = np.cumsum([0, *n]).tolist()
    rows = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    return [r[::-1] for r in rows] if reverse else rows


def gru_rows(x: dict[str, np.ndarray], a: dict[str, Any], n: list[int]) -> np.ndarray:
    buffer = x["Weight"].reshape(-1)
    w_gates, w_c = buffer[: 2 * SIZE**2].reshape(SIZE, -1), buffer[2 * SIZE**2 :].reshape(SIZE, -1)
    gate, act = ACTIVATIONS[a["gate_activation"]], ACTIVATIONS[a["activation"]]
    hidden = np.zeros((sum(n), SIZE))
    for i, rows in enumerate(walk(n, a["is_reverse"])):
        h = x["H0"][i]
        for t in rows:
            g = x["Input"][t] + x["Bias"][0]
            u, r = np.split(gate(g[: 2 * SIZE] + h @ w_gates), 2)
            c = act(g[2 * SIZE :] + (r * h) @ w_c)
            h = u * h + (1 - u) * c if a["origin_mode"] else (1 - u) * h + u * c
            hidden[t] = h
    return hidden


def lstm_rows(x: dict[str, np.ndarray], a: dict[str, Any], n: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(h, c), or with ProjWeight (projection, c)."""
    gate, act = ACTIVATIONS[a["gate_activation"]], ACTIVATIONS[a["candidate_activation"]]
    p = x["Bias"][0, 4 * SIZE :].reshape(3, SIZE) if a["use_peepholes"] else np.zeros((3, SIZE))
    out, cells = np.zeros((sum(n), x["H0"].shape[1])), np.zeros((sum(n), SIZE))
    for k, rows in enumerate(walk(n, a["is_reverse"])):
        h, c = x["H0"][k], x["C0"][k]
        for t in rows:
            candidate, i, f, o = np.split(x["Input"][t] + x["Bias"][0, : 4 * SIZE] + h @ x["Weight"], 4)
            c = gate(f + p[1] * c) * c + gate(i + p[0] * c) * act(candidate)
            if a.get("cell_clip", 0) > 0:
                c = np.clip(c, -a["cell_clip"], a["cell_clip"])
            h = gate(o + p[2] * c) * ACTIVATIONS[a["cell_activation"]](c)
            if "ProjWeight" in x:
                h = ACTIVATIONS[a["proj_activation"]](h @ x["ProjWeight"])
                if a["proj_clip"] > 0:
                    h = np.clip(h, -a["proj_clip"], a["proj_clip"])
            out[t], cells[t] = h, c
    return out, cells


def gru_inputs(n: list[int]) -> dict[str, np.ndarray]:
    return {
        "Input": random(sum(n), 3 * SIZE),
        "H0": random(len(n), SIZE),
        "Weight": random(SIZE, 3 * SIZE),
        "Bias": random(1, 3 * SIZE),
    }


def lstm_inputs(n: list[int], peepholes: bool, projected: int = 0) -> dict[str, np.ndarray]:
    inputs = {
        "Input": random(sum(n), 4 * SIZE),
        "H0": random(len(n), projected or SIZE),
        "C0": random(len(n), SIZE),
        "Weight": random(projected or SIZE, 4 * SIZE),
        "Bias": random(1, (7 if peepholes else 4) * SIZE),
    }
    return inputs | ({"ProjWeight": random(SIZE, projected)} if projected else {})


def lstm_attrs(peepholes: bool, reverse: bool, **more: Any) -> dict[str, Any]:
    return {
        "use_peepholes": peepholes,
        "is_reverse": reverse,
        "gate_activation": "sigmoid",
        "cell_activation": "tanh",
        "candidate_activation": "tanh",
        **more,
    }


def check(case: OpCase) -> None:
    reasons = case.check()
    assert not reasons, "\n".join(reasons)


@lengths_of_every_kind
@both_ways
@pytest.mark.parametrize("origin_mode", [False, True])
def test_gru(n: list[int], reverse: bool, origin_mode: bool) -> None:
    inputs = gru_inputs(n)
    attrs = {
        "activation": "tanh",
        "gate_activation": "sigmoid",
        "is_reverse": reverse,
        "origin_mode": origin_mode,
    }
    out = LoDTensor(gru_rows(inputs, attrs, n).astype(np.float32), lod_from_lengths([n]))
    check(OpCase("gru", float32(inputs, n), attrs, {"Hidden": out}))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gru_activations(name: str) -> None:
    n = [3, 1, 2]
    inputs = gru_inputs(n)
    attrs = {"activation": name, "gate_activation": name, "is_reverse": False, "origin_mode": False}
    out = LoDTensor(gru_rows(inputs, attrs, n).astype(np.float32), lod_from_lengths([n]))
    check(OpCase("gru", float32(inputs, n), attrs, {"Hidden": out}))


@lengths_of_every_kind
@both_ways
@pytest.mark.parametrize("peepholes", [False, True])
def test_lstm(n: list[int], reverse: bool, peepholes: bool) -> None:
    inputs, attrs = lstm_inputs(n, peepholes), lstm_attrs(peepholes, reverse)
    h, c = (LoDTensor(v.astype(np.float32), lod_from_lengths([n])) for v in lstm_rows(inputs, attrs, n))
    check(OpCase("lstm", float32(inputs, n), attrs, {"Hidden": h, "Cell": c}))


@lengths_of_every_kind
@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_lstmp(n: list[int], clip: float) -> None:
    inputs = lstm_inputs(n, True, 2)
    attrs = lstm_attrs(True, False, proj_activation="tanh", cell_clip=clip, proj_clip=clip)
    r, c = (LoDTensor(v.astype(np.float32), lod_from_lengths([n])) for v in lstm_rows(inputs, attrs, n))
    check(OpCase("lstmp", float32(inputs, n), attrs, {"Projection": r, "Cell": c}))


def test_the_first_states_are_zero_when_they_are_not_given() -> None:
    n = [2, 0, 3]
    inputs = gru_inputs(n)
    inputs["H0"] = np.zeros_like(inputs["H0"])
    attrs = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": False}
    out = LoDTensor(gru_rows(inputs, attrs, n).astype(np.float32), lod_from_lengths([n]))
    given = float32(inputs, n)
    del given["H0"]
    check(OpCase("gru", given, attrs, {"Hidden": out}))


def context(n: list[int]) -> Any:
    """What a kernel asks for, apart from arrays."""
    lod = lod_from_lengths([n])
    return SimpleNamespace(lod=lambda slot, i=0: lod, wants=lambda slot, i=0: True, op_type="test")


def compare_gradient(inputs: dict[str, np.ndarray], loss: Any, grads: dict[str, Any]) -> None:
    """Central differences of loss(inputs) in one random direction for each input."""
    for name, value in inputs.items():
        direction = rng.standard_normal(value.shape)
        moved = [loss(inputs | {name: value + sign * 1e-5 * direction}) for sign in (1, -1)]
        numeric = (moved[0] - moved[1]) / 2e-5
        analytic = float((grads[name + "@GRAD"] * direction).sum())
        assert analytic == pytest.approx(numeric, rel=1e-5, abs=1e-7), name


@lengths_of_every_kind
@both_ways
def test_gru_gradient(n: list[int], reverse: bool) -> None:
    inputs, common = gru_inputs(n), {"ctx": context(n), "xp": np}
    attrs = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": reverse, "origin_mode": reverse}
    cotangent = random(sum(n), SIZE)
    gates, reset, packed, _ = gru(**inputs, **attrs, **common)
    given = {k: inputs[k] for k in ("Weight", "H0")}
    saved = {"BatchGate": gates, "BatchResetHiddenPrev": reset, "BatchHidden": packed, "Hidden_grad": cotangent}
    grads = gru_grad(**given, **saved, **attrs, **common)
    compare_gradient(inputs, lambda x: float((gru(**x, **attrs, **common)[3] * cotangent).sum()), grads)


@lengths_of_every_kind
@pytest.mark.parametrize("peepholes", [False, True])
def test_lstm_gradient(n: list[int], peepholes: bool) -> None:
    inputs, common = lstm_inputs(n, peepholes), {"ctx": context(n), "xp": np}
    attrs = lstm_attrs(peepholes, True)
    cotangent = random(sum(n), SIZE)
    hidden, cell, gates, activated = lstm(**inputs, **attrs, **common)
    given = {k: v for k, v in inputs.items() if k != "Input"}
    saved = {"Hidden": hidden, "Cell": cell, "BatchGate": gates, "BatchCellPreAct": activated}
    grads = lstm_grad(**given, **saved, Hidden_grad=cotangent, **attrs, **common)
    compare_gradient(inputs, lambda x: float((lstm(**x, **attrs, **common)[0] * cotangent).sum()), grads)


@lengths_of_every_kind
def test_lstmp_gradient(n: list[int]) -> None:
    inputs, common = lstm_inputs(n, True, 2), {"ctx": context(n), "xp": np}
    attrs = lstm_attrs(True, False, proj_activation="tanh", cell_clip=0.3, proj_clip=0.15)
    cotangent = random(sum(n), 2)
    r, cell, gates, activated, hidden = lstmp(**inputs, **attrs, **common)
    given = {k: v for k, v in inputs.items() if k != "Input"}
    saved = {"Projection": r, "Cell": cell, "BatchGate": gates, "BatchCellPreAct": activated, "BatchHidden": hidden}
    grads = lstmp_grad(**given, **saved, Projection_grad=cotangent, **attrs, **common)
    compare_gradient(inputs, lambda x: float((lstmp(**x, **attrs, **common)[0] * cotangent).sum()), grads)


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


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN_TANH", "RNN_RELU"])
@pytest.mark.parametrize("lengths", [[0, 4, 2], [4, 0, 3], [1, 4, 0], [0, 0, 0]])
def test_rnn(mode: str, lengths: list[int]) -> None:
    """Two layers, two directions."""
    steps, batch, width = 4, 3, 2
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * SIZE
    matrices, biases = [], []
    for layer in range(2):
        for _ in range(2):
            matrices += [random(gates, width if layer == 0 else 2 * SIZE), random(gates, SIZE)]
            biases += [random(gates), random(gates)]
    x = random(steps, batch, width)
    first = [random(4, batch, SIZE) for _ in range(2 if mode == "LSTM" else 1)]
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
    check(OpCase("rnn", inputs, attrs, outputs))
