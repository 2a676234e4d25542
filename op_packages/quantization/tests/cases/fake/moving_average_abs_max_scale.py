"""Cases of moving_average_abs_max_scale."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, f32, floats

STATE = {"InAccum": floats(3), "InState": floats(1.5)}

CASES = [
    OpCase(
        "moving_average_abs_max_scale",
        {"X": IMAGE, **STATE},
        {"moving_rate": 0.5},
        {
            "Out": IMAGE,
            "OutScale": floats((1.5 + 2.875) / 1.75),
            "OutState": floats(1.75),
            "OutAccum": floats(1.5 + 2.875),
        },
        name="training",
    ),
    OpCase("moving_average_abs_max_scale", {"X": IMAGE, **STATE}, {}, {"Out": IMAGE}, ["X"], name="slope"),
    OpCase(
        "moving_average_abs_max_scale",
        {"X": IMAGE, **STATE},
        {"is_test": True},
        {"Out": IMAGE, "OutScale": floats(2), "OutState": floats(1.5), "OutAccum": floats(3)},
        name="test",
    ),
    OpCase(
        "moving_average_abs_max_scale",
        {"X": IMAGE},
        {"is_test": True},
        {"Out": IMAGE, "OutScale": np.zeros(1, f32)},
        name="test_without_state",
    ),
]
