"""Cases of cos."""

from __future__ import annotations

from oprack.testing import OpCase

from .._gradients import A2, DDX, DOUT, A, X
from ._family import COS, SECOND, SIN, THIRD

CASES = [
    OpCase("cos_grad", {"X": X, "Out@GRAD": DOUT}, grads=["X", "Out@GRAD"]),
    OpCase(
        "cos_double_grad",
        SECOND,
        outputs={"X@GRAD": -DOUT * DDX * COS, "grad_out@GRAD": -DDX * SIN},
        grads=["X", "grad_out", "grad_x@GRAD"],
    ),
    OpCase(
        "cos_triple_grad",
        THIRD,
        outputs={
            "X@GRAD": A * DDX * DOUT * SIN - A2 * DDX * COS,
            "grad_out_forward@GRAD": -A * DDX * COS,
            "grad_x_grad_forward@GRAD": -A2 * SIN - A * DOUT * COS,
        },
    ),
]
