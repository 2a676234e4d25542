"""The layer of gaussian_random."""

from __future__ import annotations

from oprack.types import FLOATS

from oprack_random.layers._draw import draw


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    """From N(mean, std^2); shape: ints, or integer Variables of one element. Op gaussian_random."""
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    return draw("gaussian_random", shape, dtype, FLOATS, attrs, name)
