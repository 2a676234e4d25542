"""Cases of nce with noise that is given: the cost by its formula, and its slope."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X, W, B = RNG.standard_normal((3, 4)), RNG.standard_normal((6, 4)), RNG.standard_normal(6)
LABEL, NOISE = np.array([[1, 0], [5, 2], [3, 3]]), [4, 0, 4]
WEIGHT = np.array([[1.0], [0.5], [2]])
PROBS = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.1])
INPUTS = {"Input": X, "Label": LABEL, "Weight": W, "Bias": B, "SampleWeight": WEIGHT, "CustomDistProbs": PROBS}
ATTRS = {"num_total_classes": 6, "num_neg_samples": 3, "custom_neg_classes": NOISE, "sampler": 2}


def cost(chances: np.ndarray) -> np.ndarray:
    """The loss of each row by nce's formula."""
    o, q = 1 / (1 + np.exp(-(X @ W.T + B))), 3 * chances
    rows = np.arange(3)[:, None]
    true = np.log(o / (o + q))[rows, LABEL].sum(axis=1)
    return -WEIGHT * (true + np.log(q / (o + q))[rows, [NOISE] * 3].sum(axis=1))[:, None]


def bias_gradient() -> np.ndarray:
    """That of the sum of the costs, by class."""
    o, q = 1 / (1 + np.exp(-(X @ W.T + B))), 3 * PROBS
    found, rows = np.zeros(6), np.arange(3)[:, None]
    np.add.at(found, LABEL, (WEIGHT * (q * (o - 1) / (o + q))[rows, LABEL]))
    np.add.at(found, [NOISE] * 3, (WEIGHT * (o * (1 - o) / (o + q))[rows, [NOISE] * 3]))
    return found


SAMPLES = np.concatenate([LABEL, [NOISE] * 3], axis=1)
LOG_UNIFORM = np.log((np.arange(6) + 2) / (np.arange(6) + 1)) / np.log(7)
CASES = [
    OpCase("nce", INPUTS, ATTRS, {"Cost": cost(PROBS)}, grads=["Input", "Weight", "Bias"]),
    OpCase("nce", INPUTS, ATTRS | {"sampler": 1}, {"Cost": cost(LOG_UNIFORM)}, name="log-uniform"),
    OpCase("nce", INPUTS, ATTRS | {"is_sparse": True}, {"Cost": cost(PROBS)}, grads=["Weight"], name="SelectedRows"),
    OpCase(
        "nce_grad",
        INPUTS
        | {
            "SampleLabels": SAMPLES,
            "SampleLogits": (1 / (1 + np.exp(-(X @ W.T + B))))[np.arange(3)[:, None], SAMPLES],
            "Cost@GRAD": np.ones((3, 1)),
        },
        ATTRS,
        {"Bias@GRAD": bias_gradient(), "Input@GRAD": None, "Weight@GRAD": None},
    ),
]
