"""Cases of sequence_scatter."""

from __future__ import annotations

from oprack.testing import OpCase

from .._rows import ids, of_every_length, random, sequences, split


def scatter(n: list[int]) -> OpCase:
    x, places, updates = random(len(n), 4), ids(n, 4), sequences(random(sum(n), 1), n)
    out = x.copy()
    for i, (columns, values) in enumerate(zip(split(places), split(updates), strict=True)):
        for c, v in zip(columns[:, 0], values[:, 0], strict=True):
            out[i, c] += v
    inputs = {"X": x, "Ids": places, "Updates": updates}
    return OpCase("sequence_scatter", inputs, outputs={"Out": out}, grads=["X", "Updates"])


CASES = of_every_length(scatter)
