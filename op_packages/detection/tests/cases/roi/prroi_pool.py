"""Cases of prroi_pool: the mean of a plane is its value in the middle, an empty region; slopes by map and corners."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

ROWS, COLUMNS = np.mgrid[:6, :7].astype(np.float64)
PLANE = (2 * ROWS - 3 * COLUMNS + 1)[None, None]
ROIS = np.array([[1.25, 0.5, 4.75, 3.0], [2, 2, 2, 4]])
MIDDLE_X, MIDDLE_Y = 1.25 + 3.5 * np.array([0.25, 0.75]), 0.5 + 2.5 * 0.5
WANT = np.zeros((2, 1, 1, 2))
WANT[0, 0, 0] = 2 * MIDDLE_Y - 3 * MIDDLE_X + 1
MAP = np.random.default_rng(4).standard_normal((1, 2, 6, 7))
CASES = [
    OpCase(
        "prroi_pool",
        {"X": PLANE, "ROIs": ROIS, "BatchRoINums": np.array([2])},
        {"pooled_height": 1, "pooled_width": 2},
        {"Out": WANT},
        name="plane",
    ),
    OpCase(
        "prroi_pool",
        {"X": MAP, "ROIs": 2 * ROIS[:1], "BatchRoINums": np.array([1])},
        {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5},
        {"Out": None},
        grads=["X", "ROIs"],
        name="slopes",
    ),
    # a bin between the centres of four pixels: their mean, and its slopes towards the sides
    OpCase(
        "prroi_pool_grad",
        {
            "X": np.array([[[[1.0, 4], [2, 9]]]]),
            "ROIs": np.array([[0.0, 0, 1, 1]]),
            "BatchRoINums": np.array([1]),
            "Out": np.full((1, 1, 1, 1), 4.0),
            "Out@GRAD": np.full((1, 1, 1, 1), 2.0),
        },
        outputs={
            "X@GRAD": np.full((1, 1, 2, 2), 0.5),
            "ROIs@GRAD": 2 * np.array([[4 - 1.5, 4 - 2.5, 6.5 - 4, 5.5 - 4]]),
        },
    ),
]
