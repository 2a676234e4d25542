"""Kernels of ops.training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from oprack.kernel import Array, kernel


def _groups(inputs: list[Array], count: int) -> Iterator[tuple[Array, ...]]:
    """Tensor, gradient and states of one after the other."""
    n = len(inputs) // count
    return zip(*(inputs[i * n : (i + 1) * n] for i in range(count)), strict=True)


def _joined(new: Sequence[tuple[Array, ...]], like: list[Array]) -> list[Array]:
    return [np.asarray(value, like[0].dtype) for sort in zip(*new, strict=True) for value in sort]


@kernel("onnx_adagrad", place="cpu")
def adagrad(
    R: Array, T: Array, inputs: list[Array], *, norm_coefficient: float, decay_factor: float, epsilon: float
) -> list[Array]:
    rate = float(R.reshape(-1)[0]) / (1 + int(T.reshape(-1)[0]) * decay_factor)
    new = []
    for x, g, h in _groups(inputs, 3):
        g = norm_coefficient * x + g
        h = h + g * g
        new.append((x - rate * g / (np.sqrt(h) + epsilon), h))
    return _joined(new, inputs)


@kernel("onnx_adam", place="cpu")
def adam(
    R: Array,
    T: Array,
    inputs: list[Array],
    *,
    norm_coefficient: float,
    norm_coefficient_post: float,
    alpha: float,
    beta: float,
    epsilon: float,
) -> list[Array]:
    rate, steps = float(R.reshape(-1)[0]), int(T.reshape(-1)[0])
    if steps > 0:
        rate = rate * math.sqrt(1 - beta**steps) / (1 - alpha**steps)
    new = []
    for x, g, v, h in _groups(inputs, 4):
        g = norm_coefficient * x + g
        v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        x = x - rate * v / (np.sqrt(h) + epsilon)
        new.append(((1 - norm_coefficient_post) * x, v, h))
    return _joined(new, inputs)


@kernel("onnx_momentum", place="cpu")
def momentum(
    R: Array, T: Array, inputs: list[Array], *, norm_coefficient: float, alpha: float, beta: float, mode: str
) -> list[Array]:
    rate, share = float(R.reshape(-1)[0]), beta if int(T.reshape(-1)[0]) > 0 else 1.0
    new = []
    for x, g, v in _groups(inputs, 3):
        g = norm_coefficient * x + g
        v = alpha * v + share * g
        new.append((x - rate * (g + alpha * v if mode == "nesterov" else v), v))
    return _joined(new, inputs)
