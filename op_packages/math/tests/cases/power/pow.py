"""Cases of pow."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats, ints
from .._gradients import A2, DDX, DOUT, A, X

P = 2.5
CASES = [
    OpCase("pow", {"X": ints(7, -7, 0)}, {"factor": 2.5}, {"Out": ints(49, 49, 0)}, name="integers"),
    OpCase(
        "pow",
        {"X": floats(0, 2), "FactorTensor": np.array([3], f32)},
        outputs={"Out": floats(0, 8)},
        grads=["X"],
        name="tensor",
    ),
    OpCase("pow_grad", {"X": X, "Out@GRAD": DOUT}, {"factor": P}, grads=["X", "Out@GRAD"]),
    OpCase(
        "pow_double_grad",
        {"X": X, "grad_out": DOUT, "grad_x@GRAD": DDX},
        {"factor": P},
        outputs={"X@GRAD": DDX * DOUT * P * (P - 1) * X ** (P - 2), "grad_out@GRAD": DDX * P * X ** (P - 1)},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "pow_double_grad",
        {"X": np.zeros(2, np.float32), "grad_out": DOUT[0, :2], "grad_x@GRAD": DDX[0, :2]},
        {"factor": 1.0},
        outputs={"X@GRAD": np.zeros(2, np.float32), "grad_out@GRAD": DDX[0, :2]},
        name="linear_at_0",
    ),
    OpCase(
        "pow_triple_grad",
        {"X": X, "grad_out": DOUT, "grad_grad_x": DDX, "grad_x@GRAD": A, "grad_grad_out@GRAD": A2},
        {"factor": P},
        outputs={
            "X@GRAD": A * DDX * DOUT * P * (P - 1) * (P - 2) * X ** (P - 3) + A2 * DDX * P * (P - 1) * X ** (P - 2),
            "grad_out@GRAD": A * DDX * P * (P - 1) * X ** (P - 2),
            "grad_grad_x@GRAD": A * DOUT * P * (P - 1) * X ** (P - 2) + A2 * P * X ** (P - 1),
        },
    ),
]
