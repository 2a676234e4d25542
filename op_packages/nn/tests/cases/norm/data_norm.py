"""Cases of data_norm: the affine step, and slots that were never shown."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.random.default_rng(0).standard_normal((5, 4))
X[1, 0], X[3, 2] = 0, 0  # the first column of a slot counts how often it was shown
STATE = {
    "BatchSize": np.array([10.0, 8, 12, 9]),
    "BatchSum": np.array([1.0, -2, 3, 4]),
    "BatchSquareSum": np.array([9.0, 16, 25, 4]),
}
AFFINE = {"scale_w": np.array([1.0, 2, 0.5, -1]), "bias": np.array([0.0, 1, 2, 3])}
MEANS = STATE["BatchSum"] / STATE["BatchSize"]
SCALES = np.sqrt(STATE["BatchSize"] / STATE["BatchSquareSum"])
Y = (X - MEANS) * SCALES
SHOWN = np.repeat(X[:, ::2] != 0, 2, axis=1)
DY = np.random.default_rng(1).standard_normal((5, 4))
CASES = [
    OpCase(
        "data_norm",
        {"X": X, **STATE, **AFFINE},
        {"enable_scale_and_shift": True},
        {"Y": Y * AFFINE["scale_w"] + AFFINE["bias"]},
        grads=["X", "scale_w", "bias"],
        name="affine",
    ),
    OpCase("data_norm", {"X": X, **STATE}, {"slot_dim": 2}, {"Y": np.where(SHOWN, Y, 0)}, name="slots"),
    OpCase(
        "data_norm_grad",
        {"X": X, "Means": MEANS, "Scales": SCALES, "Y@GRAD": DY},
        {"slot_dim": 2, "epsilon": 0.5},
        {
            "X@GRAD": DY * SHOWN * SCALES,
            "BatchSize@GRAD": SHOWN.sum(axis=0).astype(np.float64),
            "BatchSum@GRAD": (X * SHOWN).sum(axis=0),
            "BatchSquareSum@GRAD": ((X - MEANS) ** 2 * SHOWN).sum(axis=0) + 0.5 * SHOWN.sum(axis=0),
        },
    ),
]
