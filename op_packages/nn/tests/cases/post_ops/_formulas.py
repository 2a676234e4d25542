"""What a row of post-ops makes of an array, and convolutions, by their formulas in double precision."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def draw(*shape: int) -> np.ndarray:
    """float32 standard normal numbers."""
    return np.random.default_rng(11).standard_normal(shape).astype(np.float32)


ROWS: dict[str, list[str]] = {
    "plain": [],
    "relu": ["relu"],
    "relu6": ["relu6 6.0"],
    "leaky_relu": ["leaky_relu 0.1"],
    "sigmoid": ["sigmoid"],
    "tanh": ["tanh"],
    "gelu": ["gelu 0.0"],
    "gelu_tanh": ["gelu 1.0"],
    "swish": ["swish 1.5"],
    "silu": ["silu"],
    "hard_swish": ["hard_swish 6.0 6.0 3.0"],
    "hard_sigmoid": ["hard_sigmoid 0.2 0.5"],
    "scaled": ["scale 0.5 0.25 1.0", "relu", "scale 2.0 1.0 0.0"],
}
"""Name -> post-ops."""


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu(x: np.ndarray, approximate: float) -> np.ndarray:
    if approximate:
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


_FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x, most: np.clip(x, 0, most),
    "leaky_relu": lambda x, alpha: np.where(x > 0, x, alpha * x),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "gelu": _gelu,
    "swish": lambda x, beta: x * _sigmoid(beta * x),
    "silu": lambda x: x * _sigmoid(x),
    "hard_swish": lambda x, threshold, scale, offset: x * np.clip(x + offset, 0, threshold) / scale,
    "hard_sigmoid": lambda x, slope, offset: np.clip(slope * x + offset, 0, 1),
    "scale": lambda x, factor, bias, after: factor * x + bias if after else factor * (x + bias),
}


def after(y: np.ndarray, post_ops: Sequence[str], residual: np.ndarray | None = None) -> np.ndarray:
    for text in post_ops:
        name, *numbers = text.split()
        y = y + residual if name == "residual" else _FUNCTIONS[name](y, *map(float, numbers))
    return y


def convolution(
    x: np.ndarray,
    w: np.ndarray,
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    groups: int = 1,
) -> np.ndarray:
    """pads: above, below, left and right."""
    x, w = x.astype("f8"), w.astype("f8")
    x = np.pad(x, ((0, 0), (0, 0), tuple(pads[:2]), tuple(pads[2:])))
    (k, c, kh, kw), (sh, sw), (dh, dw) = w.shape, strides, dilations
    oh, ow = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    y = np.zeros((len(x), k, oh, ow))
    for f in range(k):
        first = f // (k // groups) * c
        for a in range(kh):
            for b in range(kw):
                read = x[:, first : first + c, a * dh : a * dh + (oh - 1) * sh + 1 : sh]
                read = read[..., b * dw : b * dw + (ow - 1) * sw + 1 : sw]
                y[:, f] += np.tensordot(read, w[f, :, a, b], ([1], [0]))
    return y


def transposed(x: np.ndarray, w: np.ndarray, strides: Sequence[int], cut: int = 0) -> np.ndarray:
    """cut: rows and columns that go on every side."""
    x, w = x.astype("f8"), w.astype("f8")
    (n, _, height, width), (_, k, kh, kw), (sh, sw) = x.shape, w.shape, strides
    y = np.zeros((n, k, (height - 1) * sh + kh, (width - 1) * sw + kw))
    for i in range(height):
        for j in range(width):
            y[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw] += np.tensordot(x[:, :, i, j], w, ([1], [0]))
    return y[:, :, cut : y.shape[2] - cut, cut : y.shape[3] - cut]
