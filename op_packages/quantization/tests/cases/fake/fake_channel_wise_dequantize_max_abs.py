"""Cases of fake_channel_wise_dequantize_max_abs."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import IMAGE, f32, floats

CASES = [
    OpCase(
        "fake_channel_wise_dequantize_max_abs",
        {"X": IMAGE, "Scales": [floats(1, 2, 4)]},
        {"quant_axis": 1},
        {"Out": IMAGE * np.array([1, 2, 4], f32)[:, None] / 127},
        name="one_scale",
    ),
    OpCase(
        "fake_channel_wise_dequantize_max_abs",
        {"X": IMAGE, "Scales": [floats(1, 2, 4, 8), floats(3)]},
        {"quant_bits": [8, 4], "x_num_col_dims": 2},
        {"Out": IMAGE * np.array([1, 2, 4, 8], f32) * 3 / (127 * 7)},
        name="two_scales",
    ),
]
