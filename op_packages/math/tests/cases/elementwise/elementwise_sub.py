"""Cases of elementwise_sub."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import x, y
from .._gradients import DDY, draw

CASES = [
    OpCase(
        "elementwise_sub", {"X": y, "Y": x}, {"axis": 1}, {"Out": y[:, None] - x}, ["X", "Y"], name="x_of_lower_rank"
    ),
    OpCase(
        "elementwise_sub_grad_grad",
        {"Y": draw(2, 4, 3), "DOut": draw(2, 4, 3, seed=1), "DDX": DDY, "DDY": np.full((2, 4, 3), 2, np.float32)},
        outputs={"DDOut": np.broadcast_to(DDY - 2, (2, 4, 3))},
        name="x_of_lower_rank",
    ),
]
