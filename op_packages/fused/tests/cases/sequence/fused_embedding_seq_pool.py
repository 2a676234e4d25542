"""Cases of fused_embedding_seq_pool."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._data import draw, f32

W = draw(5, 3)
IDS = LoDTensor(np.array([[1], [4], [1], [2]]), [[0, 3, 3, 4]])
OUT = np.stack([2 * W[1] + W[4], np.zeros(3, f32), W[2]])

CASES = [
    OpCase("fused_embedding_seq_pool", {"W": W, "Ids": IDS}, {"is_sparse": sparse}, {"Out": OUT}, ["W"], name=name)
    for sparse, name in ((False, "dense"), (True, "sparse"))
]
CASES += [
    OpCase(
        "fused_embedding_seq_pool",
        {"W": W, "Ids": IDS},
        {"padding_idx": 1, "is_sparse": sparse},
        {"Out": np.stack([W[4], np.zeros(3, f32), W[2]])},
        ["W"],
        name=f"padding_{sparse}",
    )
    for sparse in (False, True)
]
