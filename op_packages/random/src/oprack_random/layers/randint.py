"""The layer of randint."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable

from oprack_random.layers._draw import draw


def randint(
    low: int,
    high: int | None = None,
    shape: Sequence[int | Variable] = (1,),
    dtype: object = "int64",
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Integers from low to high - 1; one bound alone is `high`, with low 0. Op randint."""
    if high is None:
        low, high = 0, low
    return draw("randint", list(shape), dtype, {"int32", "int64"}, {"low": low, "high": high, "seed": seed}, name)
