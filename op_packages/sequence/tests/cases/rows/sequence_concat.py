"""Cases of sequence_concat."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def concat(n: list[int]) -> OpCase:
    a, b = sequences(random(sum(n), 2), n), sequences(random(sum(n), 2), n[::-1])
    parts = [np.concatenate(pair) for pair in zip(split(a), split(b), strict=True)]
    return OpCase("sequence_concat", {"X": [a, b]}, outputs={"Out": joined(parts, a.array)}, grads=["X"])


CASES = of_every_length(concat)
