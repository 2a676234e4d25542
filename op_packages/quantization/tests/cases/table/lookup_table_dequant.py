"""Cases of lookup_table_dequant."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32

BYTES = np.array([[0, 64, 128, 192], [255, 1, 2, 3], [16, 32, 48, 80]], np.uint8)
RANGES = np.array([[0, 1], [-2, 2], [10, 266]], f32)
W = np.concatenate([RANGES, BYTES.view(f32)], axis=1)
ROWS = np.array([[0, 0.25, 0.5, 0.75], [255 / 64 - 2, 1 / 64 - 2, 2 / 64 - 2, 3 / 64 - 2], [26, 42, 58, 90]], f32)
IDS = np.array([[[2], [0]], [[1], [2]]], np.int64)

CASES = [
    OpCase("lookup_table_dequant", {"W": W, "Ids": IDS}, outputs={"Out": ROWS[IDS[..., 0]]}, name="rows"),
    OpCase(
        "lookup_table_dequant",
        {"W": W, "Ids": IDS[0]},
        {"padding_idx": 2},
        {"Out": np.array([[0, 0, 0, 0], ROWS[0]], f32)},
        name="padding",
    ),
    OpCase(
        "lookup_table_dequant",
        {"W": W, "Ids": np.zeros((0, 1), np.int64)},
        outputs={"Out": np.zeros((0, 4), f32)},
        name="nothing",
    ),
]
