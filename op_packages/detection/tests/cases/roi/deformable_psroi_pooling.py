"""Cases of deformable_psroi_pooling that shift their bins, and slopes along the shifts."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X, ROIS = RNG.standard_normal((1, 8, 7, 7)), np.array([[1.0, 2, 9, 11], [0, 0, 6, 5]])
TRANS = RNG.uniform(-1, 1, (2, 4, 2, 2))
ATTRS = {
    "no_trans": False,
    "spatial_scale": 0.5,
    "output_dim": 2,
    "group_size": [2, 2],
    "pooled_height": 2,
    "pooled_width": 2,
    "part_size": [2, 2],
    "sample_per_part": 2,
    "trans_std": 0.1,
}


def pixel(plane: np.ndarray, y: float, x: float) -> float:
    """A bilinear sample."""
    low, left = int(y), int(x)
    high, right = min(low + 1, 6), min(left + 1, 6)
    dy, dx = y - low, x - left
    top, bottom = ((1 - dx) * plane[r, left] + dx * plane[r, right] for r in (low, high))
    return (1 - dy) * top + dy * bottom


def pooled() -> tuple[np.ndarray, np.ndarray]:
    """TopCount and Output, one sample after the other."""
    count, out = np.zeros((2, 2, 2, 2)), np.zeros((2, 2, 2, 2))
    for r, c, i, j, p, q in np.ndindex(2, 2, 2, 2, 2, 2):
        x1, y1, x2, y2 = ROIS[r]
        left, top = x1 * 0.5 - 0.5, y1 * 0.5 - 0.5
        width, height = (x2 + 1) * 0.5 - 0.5 - left, (y2 + 1) * 0.5 - 0.5 - top
        x = left + (j + q / 2) * width / 2 + TRANS[r, 2 * c, i, j] * 0.1 * width
        y = top + (i + p / 2) * height / 2 + TRANS[r, 2 * c + 1, i, j] * 0.1 * height
        if -0.5 <= x <= 6.5 and -0.5 <= y <= 6.5:
            count[r, c, i, j] += 1
            plane = X[0, (c * 2 + i) * 2 + j]
            out[r, c, i, j] += pixel(plane, np.clip(y, 0, 6), np.clip(x, 0, 6))
    return count, out / np.maximum(count, 1)


COUNT, OUT = pooled()
CASES = [
    OpCase(
        "deformable_psroi_pooling",
        {"Input": X, "ROIs": LoDTensor(ROIS, [[0, 2]]), "Trans": TRANS},
        ATTRS,
        {"TopCount": COUNT, "Output": OUT},
        grads=["Input", "Trans"],
    )
]
