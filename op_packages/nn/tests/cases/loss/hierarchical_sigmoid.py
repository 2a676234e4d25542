"""Cases of hierarchical_sigmoid: a tree of one's own, whose paths differ in length; no bias."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(9)
X, W, BIAS = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4)), RNG.standard_normal((3, 1))
TABLE = np.array([[0, 2, -1], [0, 1, 2], [1, -1, -1]])
CODE = np.array([[1, 0, -1], [0, 1, 1], [1, -1, -1]])


def _loss(bias: np.ndarray) -> np.ndarray:
    total = []
    for x, nodes, turns in zip(X, TABLE, CODE, strict=True):
        steps = [(W[n] @ x + bias[n, 0], t) for n, t in zip(nodes, turns, strict=True) if n >= 0]
        total.append(sum(np.log1p(np.exp(z)) - t * z for z, t in steps) + (3 - len(steps)) * np.log(2))
    return np.array(total)[:, None]


TREE = {"X": X, "W": W, "Label": np.array([[0], [1], [2]]), "PathTable": TABLE, "PathCode": CODE}
ATTRS = {"num_classes": 4}
CASES = [
    OpCase("hierarchical_sigmoid", TREE, ATTRS, {"Out": _loss(0 * BIAS)}, ["X", "W"], "tree", loss=["Out"]),
    OpCase(
        "hierarchical_sigmoid",
        TREE | {"Bias": BIAS},
        ATTRS,
        {"Out": _loss(BIAS)},
        ["X", "W", "Bias"],
        "bias",
        loss=["Out"],
    ),
]
