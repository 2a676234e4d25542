"""Cases of fake_quantize_dequantize_abs_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, TIES, f32, floats, rounded


def case(name: str, x: np.ndarray, scale: float, bits: int = 8, round_type: int = 1) -> OpCase:
    outputs = {"Out": rounded(x, scale, bits, round_type, restored=True), "OutScale": floats(scale)}
    return OpCase(
        "fake_quantize_dequantize_abs_max", {"X": x}, {"bit_length": bits, "round_type": round_type}, outputs, name=name
    )


CASES = [
    case("ties_away_from_zero", TIES, 127),
    case("ties_to_even", TIES, 127, round_type=0),
    case("four_bits", IMAGE, 2.875, bits=4),
    case("zeros", np.zeros((2, 2), f32), 0),
    case("nothing", np.zeros((0, 2), f32), 0),
    case("one_number", np.array(-2, f32), 2),
]
