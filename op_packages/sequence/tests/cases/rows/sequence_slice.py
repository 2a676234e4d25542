"""Cases of sequence_slice."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def slice_(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 3), n)
    offset = np.array([min(1, k) for k in n], np.int64).reshape(-1, 1)
    length = np.array([max(k - 1, 0) for k in n], np.int64).reshape(-1, 1)
    out = joined([p[1:] for p in split(x)], x.array)
    return OpCase("sequence_slice", {"X": x, "Offset": offset, "Length": length}, outputs={"Out": out}, grads=["X"])


CASES = of_every_length(slice_)
