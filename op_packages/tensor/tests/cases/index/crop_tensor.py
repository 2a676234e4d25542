"""Cases of crop_tensor: sizes to the end, shape and offsets as tensors."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(12.0).reshape(3, 4)
CASES = [
    OpCase("crop_tensor", {"X": X}, {"offsets": [1, 1], "shape": [-1, 2]}, {"Out": X[1:, 1:3]}, grads=["X"]),
    OpCase(
        "crop_tensor",
        {"X": X, "Shape": np.array([2, 3], np.int32), "Offsets": np.array([0, 1], np.int32)},
        {"shape": [1, 1]},
        {"Out": X[:2, 1:]},
        grads=["X"],
        name="tensors",
    ),
    OpCase(
        "crop_tensor",
        {
            "X": X,
            "ShapeTensor": [np.array([2], np.int32), np.array([3], np.int32)],
            "OffsetsTensor": [np.array([1], np.int32), np.array([0], np.int32)],
        },
        {"shape": [-1, -1]},
        {"Out": X[1:, :3]},
        grads=["X"],
        name="lists",
    ),
]
