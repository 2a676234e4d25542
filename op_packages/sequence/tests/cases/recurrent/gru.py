"""Cases of gru."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length
from ._walk import ACTIVATIONS, SIZE, output, program_inputs, small, walk


def by_rows(x: dict[str, np.ndarray], a: dict[str, Any], n: list[int]) -> np.ndarray:
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


def gru(n: list[int], way: str, origin_mode: bool, activation: str = "tanh", gate: str = "sigmoid") -> OpCase:
    inputs = {
        "Input": small(sum(n), 3 * SIZE),
        "H0": small(len(n), SIZE),
        "Weight": small(SIZE, 3 * SIZE),
        "Bias": small(1, 3 * SIZE),
    }
    attrs = {
        "activation": activation,
        "gate_activation": gate,
        "is_reverse": way == "reverse",
        "origin_mode": origin_mode,
    }
    smooth = "relu" not in (activation, gate)
    outputs = {"Hidden": output(by_rows(inputs, attrs, n), n)}
    return OpCase("gru", program_inputs(inputs, n), attrs, outputs, list(inputs) if smooth else [])


def without_first_state() -> OpCase:
    """Which is 0 then."""
    n = [2, 0, 3]
    inputs = {"Input": small(sum(n), 3 * SIZE), "Weight": small(SIZE, 3 * SIZE), "Bias": small(1, 3 * SIZE)}
    attrs = {"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": False}
    hidden = by_rows(inputs | {"H0": np.zeros((len(n), SIZE))}, attrs, n)
    return OpCase("gru", program_inputs(inputs, n), attrs, {"Hidden": output(hidden, n)}, list(inputs), "no H0")


CASES = [
    *(c for way in ("forward", "reverse") for mode in (False, True) for c in of_every_length(gru, way, mode)),
    *(c for name in ACTIVATIONS for c in of_every_length(gru, "forward", False, name, name)),
    without_first_state(),
]
