"""Cases of fusion_seqpool_concat."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._data import draw, f32

A, B = draw(4, 2), draw(3, 1, seed=1)

CASES = [
    OpCase(
        "fusion_seqpool_concat",
        {"X": [LoDTensor(A, [[0, 0, 4]]), LoDTensor(B, [[0, 3, 3]])]},
        outputs={"Out": LoDTensor(np.array([[0, 0, B.sum()], [*A.sum(0), 0]], f32), [[0, 1, 2]])},
        name="empty_sequences",
    ),
]
