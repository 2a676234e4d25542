"""Numbers on ties and beyond the scale, and rounding one number after the other."""

from __future__ import annotations

import math

import numpy as np

f32 = np.float32
TIES = np.array([[0.5, 1.5, -0.5, -2.5], [126.5, 127, -127, 3.25]], f32)
"""With 8 bits and this scale of 127, integers and ties."""
BEYOND = np.array([-127.6, 300, -300, 0], f32)
IMAGE = (np.arange(24, dtype=f32).reshape(2, 3, 4) - 11.5) / 4


def floats(*values: object) -> np.ndarray:
    return np.array(values, f32)


def rounded(x: np.ndarray, scale: object, bits: int = 8, round_type: int = 1, restored: bool = False) -> np.ndarray:
    """The integers, or with `restored` what they stand for. `scale` broadcasts with x."""
    bound = 2 ** (bits - 1) - 1

    def number(x: float, scale: float) -> float:
        exact = 0.0 if scale == 0 else x * bound / scale
        if round_type == 0:
            integer = max(-bound - 1, min(bound, round(exact)))
        else:
            exact = max(-bound, min(bound, exact))
            integer = math.copysign(math.floor(abs(exact) + 0.5), exact)
        return integer * scale / bound if restored else integer

    return np.vectorize(number, otypes=[f32])(x.astype("f8"), np.asarray(scale, "f8"))
