"""Cases of fake_dequantize_max_abs."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, f32, floats

CASES = [
    OpCase(
        "fake_dequantize_max_abs", {"X": IMAGE, "Scale": floats(3)}, {"max_range": 8.0}, {"Out": IMAGE * f32(3 / 8)}
    ),
    OpCase(
        "fake_dequantize_max_abs",
        {"X": np.array(4, f32), "Scale": floats(2)},
        {"max_range": 16.0},
        {"Out": np.array(0.5, f32)},
        name="one_number",
    ),
]
