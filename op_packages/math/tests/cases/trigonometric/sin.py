"""Cases of sin."""

from __future__ import annotations

from oprack.testing import OpCase

from .._gradients import A2, DDX, DOUT, A, X
from ._family import COS, SECOND, SIN, THIRD

CASES = [
    OpCase("sin_grad", {"X": X, "Out@GRAD": DOUT}, grads=["X", "Out@GRAD"]),
    OpCase(
        "sin_double_grad",
        SECOND,
        outputs={"X@GRAD": -DOUT * DDX * SIN, "grad_out@GRAD": DDX * COS},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "sin_triple_grad",
        THIRD,
        outputs={
            "X@GRAD": -A * DDX * DOUT * COS - A2 * DDX * SIN,
            "grad_out_forward@GRAD": -A * DDX * SIN,
            "grad_x_grad_forward@GRAD": A2 * COS - A * DOUT * SIN,
        },
    ),
]
