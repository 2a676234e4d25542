"""Cases of fused_softmax_mask_upper_triangle."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32, softmax

X = draw(2, 3, 4, 4)
OUT = np.zeros_like(X)
for i in range(4):
    OUT[:, :, i, : i + 1] = softmax(X[:, :, i, : i + 1])

CASES = [
    OpCase("fused_softmax_mask_upper_triangle", {"X": X}, outputs={"Out": OUT}, grads=["X"]),
    OpCase(
        "fused_softmax_mask_upper_triangle_grad",
        {"Out": np.full((1, 1, 2, 2), 0.5, f32), "Out@GRAD": np.array([[[[1, 3], [0, 8]]]], f32)},
        # half of what each gradient is above the mean
        outputs={"X@GRAD": np.array([[[[-0.5, 0.5], [-2, 2]]]], f32)},
    ),
]
