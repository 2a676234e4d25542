"""Kernels of lstm_unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels.recurrent._activations import ACTIVATIONS


@kernel("lstm_unit", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm_unit(X: Array, C_prev: Array, *, forget_bias: float, xp: ArrayModule) -> tuple[Array, Array]:
    """Gates first, then cell and state."""
    i, f, o, j = _gates(X, forget_bias, xp)
    c = C_prev * f + i * j
    return c, xp.tanh(c) * o


@kernel("lstm_unit_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm_unit_grad(
    X: Array, C_prev: Array, C: Array, C_grad: Array, H_grad: Array, *, forget_bias: float, xp: ArrayModule
) -> tuple[Array, Array]:
    """The gates are computed again."""
    i, f, o, j = _gates(X, forget_bias, xp)
    t = xp.tanh(C)
    dc = C_grad + H_grad * o * (1 - t * t)
    parts = [dc * j * i * (1 - i), dc * C_prev * f * (1 - f), H_grad * t * o * (1 - o), dc * i * (1 - j * j)]
    return xp.concatenate(parts, axis=1), dc * f


def _gates(X: Array, forget_bias: float, xp: ArrayModule) -> Iterator[Any]:
    """sigmoid(i), sigmoid(f + forget_bias), sigmoid(o), tanh(j)."""
    size = X.shape[1] // 4
    g = X.copy()
    g[:, size : 2 * size] += X.dtype.type(forget_bias)
    with np.errstate(over="ignore"):
        ACTIVATIONS["sigmoid"].apply(g[:, : 3 * size], xp)
    ACTIVATIONS["tanh"].apply(g[:, 3 * size :], xp)
    return (g[:, k * size : (k + 1) * size] for k in range(4))
