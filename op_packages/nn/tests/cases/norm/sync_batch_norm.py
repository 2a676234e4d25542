"""Cases of sync_batch_norm on one rank, where it is batch_norm."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 2, 4))
DY = RNG.standard_normal(X.shape)
SCALE, BIAS = np.array([0.5, 2.0]), np.array([0.1, -0.2])
STATE = {"Scale": SCALE, "Bias": BIAS, "Mean": np.zeros(2), "Variance": np.ones(2)}
MU, VAR = X.mean(axis=(0, 2)), X.var(axis=(0, 2))
XHAT = (X - MU[:, None]) / np.sqrt(VAR + 1e-5)[:, None]
CASES = [
    OpCase(
        "sync_batch_norm",
        {"X": X, **STATE},
        outputs={"Y": XHAT * SCALE[:, None] + BIAS[:, None], "MeanOut": 0.1 * MU, "VarianceOut": 0.9 + 0.1 * VAR},
        grads=["X", "Scale", "Bias"],
    ),
    OpCase(
        "sync_batch_norm_grad",
        {"X": X, "Y@GRAD": DY, **STATE, "SavedMean": MU, "SavedVariance": 1 / np.sqrt(VAR + 1e-5)},
        outputs={"Scale@GRAD": (DY * XHAT).sum(axis=(0, 2)), "Bias@GRAD": DY.sum(axis=(0, 2)), "X@GRAD": None},
    ),
]
