"""The layer of randint."""

from __future__ import annotations

from oprack_random.layers._draw import draw


def randint(low, high=None, shape=(1,), dtype="int64", seed=0, name=None):
    """Integers from low to high - 1; one bound alone is `high`, with low 0. Op randint."""
    if high is None:
        low, high = 0, low
    return draw("randint", list(shape), dtype, {"int32", "int64"}, {"low": low, "high": high, "seed": seed}, name)
