"""Cases of sequence_enumerate."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._rows import ids, joined, of_every_length, split


def enumerate_(n: list[int]) -> OpCase:
    x = ids(n)
    parts = [np.array([[*p[i : i + 3, 0], -7, -7, -7][:3] for i in range(len(p))]).reshape(-1, 3) for p in split(x)]
    out = joined(parts, np.zeros((0, 3), np.int64))
    return OpCase("sequence_enumerate", {"X": x}, {"win_size": 3, "pad_value": -7}, {"Out": out})


CASES = of_every_length(enumerate_)
CASES.append(
    OpCase(
        "sequence_enumerate",
        {"X": LoDTensor(np.array([[3], [4]], "uint8"), [[0, 2]])},
        {"win_size": 2, "pad_value": -7},
        {"Out": LoDTensor(np.array([[3, 4], [4, 256 - 7]], "uint8"), [[0, 2]])},
        name="without a sign, as C casts",
    )
)
