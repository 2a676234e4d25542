"""lstm and lstmp, one row after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._walk import ACTIVATIONS, SIZE, small, walk


def by_rows(x: dict[str, np.ndarray], a: dict[str, Any], n: list[int]) -> tuple[np.ndarray, np.ndarray]:
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


def lstm_inputs(n: list[int], peepholes: bool, projected: int = 0) -> dict[str, np.ndarray]:
    inputs = {
        "Input": small(sum(n), 4 * SIZE),
        "H0": small(len(n), projected or SIZE),
        "C0": small(len(n), SIZE),
        "Weight": small(projected or SIZE, 4 * SIZE),
        "Bias": small(1, (7 if peepholes else 4) * SIZE),
    }
    return inputs | ({"ProjWeight": small(SIZE, projected)} if projected else {})


def lstm_attrs(peepholes: bool, reverse: bool, **more: Any) -> dict[str, Any]:
    return {
        "use_peepholes": peepholes,
        "is_reverse": reverse,
        "gate_activation": "sigmoid",
        "cell_activation": "tanh",
        "candidate_activation": "tanh",
        **more,
    }
