"""Cases of fake_quantize_range_abs_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BEYOND, TIES, floats, rounded


def case(name: str, x: np.ndarray, known: float, scale: float, **attrs: object) -> OpCase:
    greatest, attrs = np.abs(x).max(), {"window_size": 4, **attrs}
    outputs = {
        "Out": rounded(x, scale),
        "OutScale": floats(scale),
        "OutScales": floats(0, greatest, 0, 0),
    }
    inputs = {"X": x, "InScale": floats(known), "Iter": np.array([5], np.int64)}
    return OpCase("fake_quantize_range_abs_max", inputs, attrs, outputs, name=name)


CASES = [
    case("larger_than_before", BEYOND, 127, 300),
    case("smaller_than_before", TIES, 254, 254),
    case("test", BEYOND, 127, 127, is_test=True),
    OpCase(
        "fake_quantize_range_abs_max",
        {"X": TIES, "InScale": floats(1)},
        outputs={"Out": rounded(TIES, 127), "OutScale": floats(127)},
        name="no_step",
    ),
]
