"""Cases of sequence_expand_as."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences


def expand_as(n: list[int]) -> OpCase:
    x, y = random(len(n), 4), sequences(random(sum(n), 1), n)
    parts = [np.repeat(x[i : i + 1], k, axis=0) for i, k in enumerate(n)]
    return OpCase("sequence_expand_as", {"X": x, "Y": y}, outputs={"Out": joined(parts, x)}, grads=["X"])


CASES = of_every_length(expand_as)
