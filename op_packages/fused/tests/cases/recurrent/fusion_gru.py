"""Cases of fusion_gru: of a product and gru, whose states the first step alone shows by a formula."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._data import draw, f32

X, WX, WH, B, H0 = draw(2, 3), draw(3, 6, seed=1), draw(2, 6, seed=2), draw(1, 6, seed=3), draw(3, 2, seed=4)
LOD = [[0, 1, 1, 2]]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def first_step(origin_mode: bool) -> np.ndarray:
    rows, h = X @ WX + B, H0[[0, 2]]
    gates = sigmoid(rows[:, :4] + h @ WH.reshape(-1)[:8].reshape(2, 4))
    u, r = gates[:, :2], gates[:, 2:]
    candidate = np.tanh(rows[:, 4:] + (r * h) @ WH.reshape(-1)[8:].reshape(2, 2))
    return (u * h + (1 - u) * candidate if origin_mode else (1 - u) * h + u * candidate).astype(f32)


CASES = [
    OpCase(
        "fusion_gru",
        {"X": LoDTensor(X, LOD), "H0": H0, "WeightX": WX, "WeightH": WH, "Bias": B},
        {"origin_mode": mode},
        {"Hidden": LoDTensor(first_step(mode), LOD)},
        name=f"origin_mode_{mode}",
    )
    for mode in (True, False)
]
