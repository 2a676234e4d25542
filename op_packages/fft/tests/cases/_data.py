"""Signals, and Fourier's sum as a product with a matrix."""

from __future__ import annotations

import numpy as np

f32, c64 = np.float32, np.complex64


def real(*shape: int, seed: int = 0) -> np.ndarray:
    """float32 standard normal numbers."""
    return np.random.default_rng([5, seed]).standard_normal(shape).astype(f32)


def complex_(*shape: int, seed: int = 0) -> np.ndarray:
    """complex64 numbers with standard normal parts."""
    return (real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 100)).astype(c64)


def dft(x: np.ndarray, axes: tuple[int, ...], normalization: str = "backward", forward: bool = True) -> np.ndarray:
    """The sum, axis by axis, in double precision."""
    for axis in axes:
        n = x.shape[axis]
        numbers = np.arange(n)
        matrix = np.exp((-2j if forward else 2j) * np.pi * np.outer(numbers, numbers) / n)
        divides = normalization == ("forward" if forward else "backward")
        matrix = matrix / (n if divides else n**0.5 if normalization == "ortho" else 1)
        x = np.moveaxis(np.tensordot(matrix, x.astype(complex), (1, axis)), 0, axis)
    return x
