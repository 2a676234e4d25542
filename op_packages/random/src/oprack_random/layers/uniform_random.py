"""The layer of uniform_random."""

from __future__ import annotations

from oprack.types import FLOATS

from oprack_random.layers._draw import draw


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    """From U[min, max); shape: ints, or integer Variables of one element. Op uniform_random."""
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return draw("uniform_random", shape, dtype, FLOATS, attrs, name)
