"""The layer of uniform_random."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable
from oprack.types import FLOATS

from oprack_random.layers._draw import draw


def uniform_random(
    shape: Sequence[int | Variable],
    dtype: object = "float32",
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """From U[min, max); shape: ints, or integer Variables of one element. Op uniform_random."""
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return draw("uniform_random", shape, dtype, FLOATS, attrs, name)
