"""Kernels of fft_c2r and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_fft.kernels._transform import c2r, c2r_adjoint


@kernel("fft_c2r", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2r(
    X: Array, *, axes: list[int], normalization: str, forward: bool, last_dim_size: int, xp: ArrayModule
) -> Array:
    """The transform."""
    size = last_dim_size or 2 * (X.shape[axes[-1]] - 1)
    return c2r(X, size, axes, normalization, forward, xp)


@kernel("fft_c2r_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def fft_c2r_grad(Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The adjoint."""
    return c2r_adjoint(Out_grad, axes, normalization, forward, xp)
