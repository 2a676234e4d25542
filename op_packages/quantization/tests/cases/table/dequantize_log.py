"""Cases of dequantize_log."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32

TABLE = (2.0 ** -(np.arange(128) / 8)).astype(f32)

CASES = [
    OpCase(
        "dequantize_log",
        {"X": np.array([[0, 127], [-128, -1]], np.int8), "Dict": TABLE},
        outputs={"Out": np.array([[TABLE[0], TABLE[127]], [-TABLE[0], -TABLE[127]]], f32)},
    ),
]
