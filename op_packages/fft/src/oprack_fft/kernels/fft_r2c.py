"""Kernels of fft_r2c and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_fft.kernels._transform import c2c, r2c, r2c_adjoint


@kernel("fft_r2c", place=("cpu", "cuda"), dtypes=FLOATS)
def fft_r2c(X: Array, *, axes: list[int], normalization: str, forward: bool, onesided: bool, xp: ArrayModule) -> Array:
    """The transform, or its half."""
    return (r2c if onesided else c2c)(X, axes, normalization, forward, xp)


@kernel("fft_r2c_grad", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_r2c_grad(
    X: Array, Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule
) -> Array:
    """The real part of the adjoint."""
    return r2c_adjoint(Out_grad, X.shape[axes[-1]], axes, normalization, forward, xp)
