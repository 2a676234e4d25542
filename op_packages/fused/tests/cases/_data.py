"""Numbers that cases share, and the formulas of what fused ops stand for."""

from __future__ import annotations

import numpy as np

f32 = np.float32


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """float32 standard normal numbers."""
    return np.random.default_rng([11, seed]).standard_normal(shape).astype(f32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: np.ndarray, scale: object, bias: object, epsilon: float) -> np.ndarray:
    """Over the last dim."""
    center = x - x.mean(-1, keepdims=True)
    return (center / np.sqrt((center**2).mean(-1, keepdims=True) + epsilon) * scale + bias).astype(f32)


def attention(parts: np.ndarray, alpha: float, bias: object = 0.0) -> np.ndarray:
    """[B, S, H, D] from [B, S, 3, H, D]."""
    q, k, v = (parts[:, :, i].astype("f8") for i in range(3))
    share = softmax(alpha * np.einsum("bshd,bthd->bhst", q, k) + bias)
    return np.einsum("bhst,bthd->bshd", share, v).astype(f32)


UNARY = {
    "relu": lambda x: np.maximum(x, 0),
    "scale": lambda x: 0.5 * x,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
BINARY = {"elementwise_add": np.add, "elementwise_mul": np.multiply}
