"""Kernels of mel_filter_bank and its gradient: products with a matrix that follows from the attributes."""

from __future__ import annotations

import functools

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS


@kernel("mel_filter_bank", dtypes=FLOATS)
def mel_filter_bank(X: Array, *, n_mels: int, sample_rate: float, f_min: float, f_max: float) -> Array:
    return np.matmul(_weights(X.shape[-2], n_mels, sample_rate, f_min, f_max, X.dtype.name), X)


@kernel("mel_filter_bank_grad", dtypes=FLOATS)
def mel_filter_bank_grad(
    X: ShapeOnly, Out_grad: Array, *, n_mels: int, sample_rate: float, f_min: float, f_max: float
) -> Array:
    return np.matmul(_weights(X.shape[-2], n_mels, sample_rate, f_min, f_max, Out_grad.dtype.name).T, Out_grad)


@functools.lru_cache(maxsize=32)
def _weights(bins: int, n_mels: int, sample_rate: float, f_min: float, f_max: float, dtype: str) -> Array:
    """[n_mels, bins]: the triangles."""
    top = f_max or sample_rate / 2
    mels = np.linspace(2595 * np.log10(1 + f_min / 700), 2595 * np.log10(1 + top / 700), n_mels + 2)
    corners = 700 * (10 ** (mels / 2595) - 1)
    frequencies = np.linspace(0, sample_rate / 2, bins)
    left, middle, right = (corners[i : n_mels + i, None] for i in range(3))
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    weights = np.maximum(0, np.minimum(rising, falling)).astype(dtype)
    weights.setflags(write=False)
    return weights
