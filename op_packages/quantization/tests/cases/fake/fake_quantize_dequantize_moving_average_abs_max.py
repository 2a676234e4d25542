"""Cases of fake_quantize_dequantize_moving_average_abs_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BEYOND, TIES, floats, rounded

STATE = {"InScale": floats(127), "InAccum": floats(100), "InState": floats(2)}


def case(name: str, x: np.ndarray, is_test: bool, round_type: int = 1) -> OpCase:
    accum, state, scale = (100, 2, 127) if is_test else (0.5 * 100 + np.abs(x).max(), 0.5 * 2 + 1, None)
    scale = scale or accum / state
    outputs = {
        "Out": rounded(x, scale, 8, round_type, restored=True),
        "OutScale": floats(scale),
        "OutState": floats(state),
        "OutAccum": floats(accum),
    }
    attrs = {"moving_rate": 0.5, "is_test": is_test, "round_type": round_type}
    return OpCase("fake_quantize_dequantize_moving_average_abs_max", {"X": x, **STATE}, attrs, outputs, name=name)


CASES = [
    case("training", TIES, False),
    case("training_ties_to_even", BEYOND, False, 0),
    case("test", TIES, True),
    case("test_beyond_the_scale", BEYOND, True),
    case("test_beyond_the_scale_to_even", BEYOND, True, 0),
    OpCase(
        "fake_quantize_dequantize_moving_average_abs_max",
        {"X": TIES, "InScale": floats(127)},
        {"is_test": True},
        {"Out": rounded(TIES, 127, restored=True), "OutScale": floats(127)},
        name="test_without_state",
    ),
]
