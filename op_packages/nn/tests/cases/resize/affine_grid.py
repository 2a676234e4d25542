"""Cases of affine_grid: volumes, sizes as a tensor, pixels' outer edges, one pixel."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(11)
IMAGES = RNG.standard_normal((2, 2, 3)).astype(np.float64)
VOLUMES = RNG.standard_normal((2, 3, 4)).astype(np.float64)


def _grid(theta: np.ndarray, *lines: list[float]) -> np.ndarray:
    """theta times (x, y, 1) or (x, y, z, 1); lines: the places along z, y and x."""
    points = [*np.meshgrid(*lines, indexing="ij")[::-1], np.ones([len(line) for line in lines])]
    return np.einsum("nij,j...->n...i", theta, np.stack(points))


CASES = [
    OpCase(
        "affine_grid",
        {"Theta": VOLUMES},
        {"output_shape": [2, 1, 2, 3, 2]},
        {"Output": _grid(VOLUMES, [-1, 1], [-1, 0, 1], [-1, 1])},
        grads=["Theta"],
        name="volumes",
    ),
    OpCase(
        "affine_grid",
        {"Theta": IMAGES, "OutputShape": np.array([2, 1, 2, 4], np.int32)},
        {"align_corners": False},
        {"Output": _grid(IMAGES, [-0.5, 0.5], [-0.75, -0.25, 0.25, 0.75])},
        grads=["Theta"],
        name="sizes-as-a-tensor",
    ),
    OpCase(
        "affine_grid",
        {"Theta": IMAGES},
        {"output_shape": [2, 1, 1, 2]},
        {"Output": _grid(IMAGES, [0], [-1, 1])},
        name="one-pixel",
    ),
]
