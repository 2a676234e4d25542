"""Kernels of fft_c2c and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX

from oprack_fft.kernels._transform import adjoint, c2c


@kernel("fft_c2c", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2c(X: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The transform."""
    return c2c(X, axes, normalization, forward, xp)


@kernel("fft_c2c_grad", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2c_grad(Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The adjoint."""
    return c2c(Out_grad, axes, adjoint(normalization), not forward, xp)
