"""Cases of quantize_linear."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BEYOND, IMAGE, f32, floats, rounded

ZERO, CHANNELS = np.zeros(1, f32), floats(1, 2, 4)
STATE = {"InAccum": floats(100), "InState": floats(2)}


def case(name: str, inputs: dict, outputs: dict, **attrs: object) -> OpCase:
    return OpCase("quantize_linear", inputs, attrs, outputs, name=name)


CASES = [
    case(
        "one_scale",
        {"X": BEYOND, "Scale": floats(127), "ZeroPoint": ZERO},
        {"Y": rounded(BEYOND, 127, 8, 0)},
        quant_axis=-1,
    ),
    case(
        "channels",
        {"X": IMAGE, "Scale": CHANNELS, "ZeroPoint": CHANNELS},
        {"Y": rounded(IMAGE, CHANNELS[:, None], 4, 1)},
        quant_axis=1,
        bit_length=4,
        round_type=1,
    ),
    case(
        "training",
        {"X": IMAGE, "Scale": floats(1), "ZeroPoint": ZERO, **STATE},
        {
            "Y": rounded(IMAGE, 52.875 / 2, 8, 0),
            "OutState": floats(2),
            "OutAccum": floats(52.875),
            "OutScale": floats(52.875 / 2),
        },
        quant_axis=-1,
        is_test=False,
        moving_rate=0.5,
    ),
    case(
        "training_by_channels",
        {"X": IMAGE, "Scale": CHANNELS, "ZeroPoint": CHANNELS},
        {"Y": rounded(IMAGE, [[2.875], [1.875], [2.875]], 8, 0), "OutScale": floats(2.875, 1.875, 2.875)},
        quant_axis=1,
        is_test=False,
    ),
    case(
        "observer",
        {"X": IMAGE, "Scale": floats(1), "ZeroPoint": ZERO},
        {"Y": IMAGE},
        quant_axis=-1,
        only_observer=True,
    ),
]
