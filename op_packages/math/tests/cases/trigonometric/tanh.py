"""Cases of tanh."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._gradients import A2, DDX, DOUT, A, X

OUT = np.tanh(X)
CASES = [
    OpCase(
        "tanh_grad_grad", {"Out": OUT, "grad_out": DOUT, "grad_x@GRAD": DDX}, grads=["Out", "grad_out", "grad_x@GRAD"]
    ),
    OpCase(
        "tanh_triple_grad",
        {
            "Out": OUT,
            "grad_out_forward": DOUT,
            "grad_x_grad_forward": DDX,
            "grad_out_new@GRAD": A,
            "grad_out_grad@GRAD": A2,
        },
        outputs={
            "Out@GRAD": -2 * A * DOUT * DDX - 2 * A2 * DDX * OUT,
            "grad_out_forward@GRAD": -2 * A * DDX * OUT,
            "grad_x_grad_forward@GRAD": A2 * (1 - OUT**2) - 2 * A * DOUT * OUT,
        },
    ),
    OpCase(
        "tanh_triple_grad",
        {"Out": OUT, "grad_out_forward": DOUT, "grad_x_grad_forward": DDX, "grad_out_grad@GRAD": A2},
        outputs={"Out@GRAD": -2 * A2 * DDX * OUT, "grad_x_grad_forward@GRAD": A2 * (1 - OUT**2)},
        name="one_gradient",
    ),
]
