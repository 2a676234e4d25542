"""Cases of sequence_reshape."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def reshape(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    parts = [p.reshape(-1, 2) for p in split(x)]
    out = joined(parts, np.zeros((0, 2), np.float32))
    return OpCase("sequence_reshape", {"X": x}, {"new_dim": 2}, {"Out": out}, ["X"])


CASES = of_every_length(reshape)
