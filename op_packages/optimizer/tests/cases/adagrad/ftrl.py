"""Cases of ftrl: a step from what came before, by its formula."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import grad, param, rate

N, Z = np.array([1.0, 4.0]), np.array([0.25, -0.5])
L1, L2 = 0.5, 0.25
N_OUT = N + grad**2
Z_OUT = Z + grad - (np.sqrt(N_OUT) - np.sqrt(N)) / rate * param
STEP = (L1 * np.sign(Z_OUT) - Z_OUT) / (np.sqrt(N_OUT) / rate + 2 * L2)
CASES = [
    OpCase(
        "ftrl",
        {"Param": param, "SquaredAccumulator": N, "LinearAccumulator": Z, "Grad": grad, "LearningRate": rate},
        {"l1": L1, "l2": L2},
        {"ParamOut": np.where(np.abs(Z_OUT) > L1, STEP, 0), "SquaredAccumOut": N_OUT, "LinearAccumOut": Z_OUT},
    )
]
