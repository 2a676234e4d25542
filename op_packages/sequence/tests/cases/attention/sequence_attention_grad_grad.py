"""Cases of sequence_attention_grad_grad where each query has one key, whose weight is 1 whatever the scores are.

The gradients of more keys are compared with differences in tests/test_second_gradients.py.
"""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

LOD = [[0, 0, 1, 1, 2, 2]]
rng = np.random.default_rng(0)


def rows(array: np.ndarray) -> LoDTensor:
    return LoDTensor(array, LOD)


CASES = []
for dtype in ("float32", "float64"):
    q, k, a, b = rng.standard_normal((4, 2, 1, 3)).astype(dtype)
    v, g, c = rng.standard_normal((3, 2, 1, 2)).astype(dtype)
    inputs = {
        "Q": q,
        "K": k,
        "V": v,
        "LogSumExp": (q * k).sum(axis=2) / np.sqrt(3).astype(dtype),
        "Out@GRAD": g,
        "Q@GRAD@GRAD": a,
        "K@GRAD@GRAD": b,
        "V@GRAD@GRAD": c,
    }
    zeros = {f"{slot}@GRAD": rows(np.zeros_like(inputs[slot])) for slot in "QKV"}
    outputs = zeros | {"Out@GRAD@GRAD": rows(c)}
    given = {slot: rows(x) for slot, x in inputs.items()}
    CASES.append(OpCase("sequence_attention_grad_grad", given, {}, outputs, name=dtype, atol=1e-6))
