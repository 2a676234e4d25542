"""Cases of fusion_seqpool_cvm_concat."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._data import f32

X = np.array([[3, 1, 5], [4, 2, 7]], f32)

CASES = [
    OpCase(
        "fusion_seqpool_cvm_concat",
        {"X": [LoDTensor(X, [[0, 2]])], "CVM": np.zeros((1, 2), f32)},
        outputs={"Out": LoDTensor(np.array([[np.log(8), np.log(4) - np.log(8), 12]], f32), [[0, 1]])},
    ),
]
