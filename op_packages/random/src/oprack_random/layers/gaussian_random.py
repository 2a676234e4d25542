"""The layer of gaussian_random."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable
from oprack.types import FLOATS

from oprack_random.layers._draw import draw


def gaussian_random(
    shape: Sequence[int | Variable],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: object = "float32",
    name: str | None = None,
) -> Variable:
    """From N(mean, std^2); shape: ints, or integer Variables of one element. Op gaussian_random."""
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    return draw("gaussian_random", shape, dtype, FLOATS, attrs, name)
