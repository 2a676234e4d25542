"""Cases of mel_filter_bank; the weights are written down from their corners, filter by filter."""

from __future__ import annotations

import math

import numpy as np
from oprack.testing import OpCase

random = np.random.default_rng(0)


def weight(m: int, k: int, bins: int, n_mels: int, rate: float, low: float, high: float) -> float:
    """Of bin k in filter m."""
    mels = [2595 * math.log10(1 + f / 700) for f in (low, high)]
    corner = [700 * (10 ** ((mels[0] + (mels[1] - mels[0]) * i / (n_mels + 1)) / 2595) - 1) for i in range(m, m + 3)]
    f = rate / 2 * k / (bins - 1)
    if f <= corner[0] or f >= corner[2]:
        return 0.0
    return (f - corner[0]) / (corner[1] - corner[0]) if f <= corner[1] else (corner[2] - f) / (corner[2] - corner[1])


ATTRS = {"n_mels": 4, "sample_rate": 8000.0, "f_min": 50.0, "f_max": 3000.0}
W = np.array([[weight(m, k, 17, 4, 8000.0, 50.0, 3000.0) for k in range(17)] for m in range(4)])
X = random.uniform(0, 2, (2, 17, 5))
CASES = [
    OpCase("mel_filter_bank", {"X": X}, ATTRS, {"Out": W @ X}, ["X"]),
    OpCase(
        "mel_filter_bank",
        {"X": X[0].astype("float32")},
        ATTRS,
        {"Out": (W @ X[0]).astype("float32")},
        ["X"],
        name="float32",
    ),
    OpCase("mel_filter_bank", {"X": X[..., :0]}, ATTRS, {"Out": np.zeros((2, 4, 0))}, name="no frames"),
    OpCase(
        "mel_filter_bank_grad",
        {"X": X, "Out@GRAD": np.ones((2, 4, 5))},
        ATTRS,
        {"X@GRAD": np.broadcast_to(W.sum(axis=0)[:, None], (2, 17, 5)).copy()},
    ),
]
