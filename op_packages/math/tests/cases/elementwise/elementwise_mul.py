"""Cases of elementwise_mul."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, rows, with_values, x, y
from .._gradients import DDX, DDY, DOUT, A, B, C, X, Y

CASES = [
    OpCase(
        "elementwise_mul",
        {"X": x[0], "Y": y[:, None, None]},
        {"axis": 0},
        {"Out": x[0][:, :, None] * y[:, None, None]},
        ["X", "Y"],
        name="y_of_higher_rank",
    ),
    OpCase(
        "elementwise_mul",
        {"X": rows, "Y": np.array([2], f32)},
        outputs={"Out": with_values(rows.value * 2)},
        name="rows",
    ),
    OpCase(
        "elementwise_mul_grad_grad",
        {"X": X, "Y": Y, "DOut": DOUT, "DDX": DDX, "DDY": DDY},
        outputs={"DDOut": DDX * Y + X * DDY, "X@GRAD": DOUT * DDY, "Y@GRAD": (DOUT * DDX).sum(0)},
        grads=["X", "Y", "DOut", "DDX", "DDY"],
    ),
    OpCase(
        "elementwise_mul_triple_grad",
        {"X": X, "Y": Y, "DOut": DOUT, "DDX": DDX, "DDY": DDY, "D_DX": A, "D_DY": B, "D_DDOut": C},
        outputs={
            "D_X": C * DDY,
            "D_Y": (C * DDX).sum(0),
            "D_DOut": A * DDY + B * DDX,
            "D_DDX": B * DOUT + C * Y,
            "D_DDY": (A * DOUT + C * X).sum(0),
        },
    ),
]
