"""Matrices that cases of many ops share, with entries that floats hold exactly where a formula needs it."""

from __future__ import annotations

import numpy as np

f32 = np.float32


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """float32 standard normal numbers."""
    return np.random.default_rng([3, seed]).standard_normal(shape).astype(f32)


def floats(*values: object) -> np.ndarray:
    return np.array(values, f32)


LOWER = np.array([[[2, 0, 0], [1, 3, 0], [-1, 0.5, 1]], [[1, 0, 0], [0.5, 2, 0], [2, -1, 4]]], f32)
"""Lower triangles with positive diagonals."""
POSITIVE = LOWER @ LOWER.swapaxes(-1, -2)
"""Positive definite matrices, whose Cholesky factors are LOWER."""
REGULAR = np.array([[[4, 1, 0], [1, 3, -1], [0.5, 0, 2]], [[-3, 1, 1], [0, 2, 0.5], [1, 0, 5]]], f32)
"""Matrices with an inverse."""
SINGULAR = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], f32)
NONE = np.zeros((0, 3, 3), f32)
"""No matrix at all."""
EMPTY = np.zeros((2, 0, 0), f32)
"""Matrices without elements."""
