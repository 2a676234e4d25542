"""Cases of dequantize_abs_max."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats

NUMBERS = np.array([[-128, 0], [64, 127]])

CASES = [
    OpCase(
        "dequantize_abs_max",
        {"X": NUMBERS.astype(dtype), "Scale": floats(0.5)},
        {"max_range": 64.0},
        {"Out": (NUMBERS / 128).astype(f32)},
        name=dtype,
    )
    for dtype in ("int8", "int16")
]
