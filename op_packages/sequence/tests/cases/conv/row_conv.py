"""Cases of row_conv."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def row_conv(n: list[int]) -> OpCase:
    x, weights = sequences(random(sum(n), 3), n), random(3, 3)
    parts = [
        np.array([sum(p[t + k] * weights[k] for k in range(3) if t + k < len(p)) for t in range(len(p))]).reshape(-1, 3)
        for p in split(x)
    ]
    inputs = {"X": x, "Filter": weights}
    return OpCase("row_conv", inputs, outputs={"Out": joined(parts, x.array)}, grads=["X", "Filter"])


CASES = of_every_length(row_conv)
