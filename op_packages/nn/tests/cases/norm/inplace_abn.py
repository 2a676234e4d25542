"""Cases of inplace_abn: the activations, and the gradient from Y alone."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 2, 4))
SCALE, BIAS = np.array([0.5, 2.0]), np.array([0.1, -0.2])
STATE = {"Scale": SCALE, "Bias": BIAS, "Mean": np.zeros(2), "Variance": np.ones(2)}
MU, VAR = X.mean(axis=(0, 2)), X.var(axis=(0, 2))
Z = (X - MU[:, None]) / np.sqrt(VAR + 1e-5)[:, None] * SCALE[:, None] + BIAS[:, None]
LEAKY, ELU = np.where(Z < 0, 0.3 * Z, Z), np.where(Z < 0, 0.3 * np.expm1(Z), Z)
DY = RNG.standard_normal(X.shape)
CASES = [
    OpCase(
        "inplace_abn",
        {"X": X, **STATE},
        {"activation": activation, "alpha": 0.3},
        {"Y": y},
        grads=["X", "Scale", "Bias"],
        name=activation,
    )
    for activation, y in (("identity", Z), ("leaky_relu", LEAKY), ("elu", ELU))
]
CASES.append(
    OpCase(
        "inplace_abn_grad",
        {"Y": LEAKY, "Y@GRAD": DY, **STATE, "SavedMean": MU, "SavedVariance": 1 / np.sqrt(VAR + 1e-5)},
        {"activation": "leaky_relu", "alpha": 0.3},
        {"Bias@GRAD": (DY * np.where(Z < 0, 0.3, 1)).sum(axis=(0, 2)), "X@GRAD": None, "Scale@GRAD": None},
    )
)
