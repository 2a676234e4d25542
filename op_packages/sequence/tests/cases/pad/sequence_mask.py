"""Cases of sequence_mask."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length


def mask(n: list[int]) -> OpCase:
    out = np.array([[j < k for j in range(4)] for k in n], bool).reshape(-1, 4)
    return OpCase("sequence_mask", {"X": np.array(n, np.int64)}, {"maxlen": 4, "out_dtype": 0}, {"Y": out})


CASES = of_every_length(mask)
