"""The activations by their formulas."""

from __future__ import annotations

import math

import numpy as np

ERF = np.vectorize(math.erf)
ACTIVATIONS = {
    "": (0.0, 0.0, lambda x: x),
    "abs": (0.0, 0.0, np.abs),
    "clip": (-0.25, 0.5, lambda x: np.clip(x, -0.25, 0.5)),
    "gelu_erf": (0.0, 0.0, lambda x: x / 2 * (1 + ERF(x / math.sqrt(2)))),
    "gelu_tanh": (0.0, 0.0, lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "hard_sigmoid": (0.25, 0.5, lambda x: np.clip(x / 4 + 0.5, 0, 1)),
    "hard_swish": (0.25, 0.5, lambda x: x * np.clip(x / 4 + 0.5, 0, 1)),
    "leaky_relu": (0.25, 0.0, lambda x: np.where(x < 0, x / 4, x)),
    "mish": (0.0, 0.0, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "relu": (0.0, 0.0, lambda x: np.maximum(x, 0)),
    "relu6": (0.5, 0.0, lambda x: np.clip(x, 0, 0.5)),
    "sigmoid": (0.0, 0.0, lambda x: 1 / (1 + np.exp(-x))),
    "sqrt": (0.0, 0.0, np.sqrt),
    "swish": (1.5, 0.0, lambda x: x / (1 + np.exp(-1.5 * x))),
    "tanh": (0.0, 0.0, np.tanh),
}
"""Name -> (alpha, beta, function)."""
