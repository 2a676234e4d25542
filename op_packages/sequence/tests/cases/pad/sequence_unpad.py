"""Cases of sequence_unpad."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random


def unpad(n: list[int]) -> OpCase:
    x = random(len(n), 5, 3)
    out = joined([x[i, :k] for i, k in enumerate(n)], np.zeros((0, 3), np.float32))
    return OpCase("sequence_unpad", {"X": x, "Length": np.array(n, np.int64)}, outputs={"Out": out}, grads=["X"])


CASES = of_every_length(unpad)
