"""Cases of sequence_positions."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, random, sequences


def case(n: list[int], before: list[int] | None = None) -> OpCase:
    first = before or [0] * len(n)
    out = np.array([b + t for k, b in zip(n, first, strict=True) for t in range(k)], np.int64)
    inputs = {"X": sequences(random(sum(n), 2), n)}
    if before is not None:
        inputs["Before"] = sequences(random(sum(before), 3), before)
    return OpCase("sequence_positions", inputs, {}, {"Out": sequences(out, n)})


CASES = [*of_every_length(case), case([1, 0, 2, 1], [3, 2, 0, 1])]
