"""Cases of sequence_softmax."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def softmax(n: list[int], *columns: int) -> OpCase:
    x = sequences(random(sum(n), *columns), n)
    parts = [np.exp(p) / np.exp(p).sum(0) for p in split(x)]
    return OpCase("sequence_softmax", {"X": x}, outputs={"Out": joined(parts, x.array)}, grads=["X"])


CASES = [*of_every_length(softmax, 1), *of_every_length(softmax, 2, 3), softmax([2, 0, 3])]
