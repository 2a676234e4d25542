"""Cases of add_position_encoding."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def position_encoding(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    parts = []
    for p in split(x):
        t = np.arange(len(p))[:, None]
        angle = t / 10000.0 ** (np.arange(2) / 1)
        parts.append(0.5 * p + 2 * np.concatenate([np.sin(angle), np.cos(angle)], axis=1))
    attrs = {"alpha": 0.5, "beta": 2.0}
    return OpCase("add_position_encoding", {"X": x}, attrs, {"Out": joined(parts, x.array)}, ["X"])


CASES = of_every_length(position_encoding)
