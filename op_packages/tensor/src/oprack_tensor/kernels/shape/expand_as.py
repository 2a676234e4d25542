"""Kernels of expand_as and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels.shape._tile import sum_of_tiles


@kernel("expand_as", place=("cpu", "cuda"))
def expand_as(X: Array, target_tensor: ShapeOnly, *, xp: ArrayModule) -> Array:
    """X repeated."""
    return xp.tile(X, [b // max(a, 1) for a, b in zip(X.shape, target_tensor.shape, strict=True)])


expand_as_grad = kernel("expand_as_grad", place=("cpu", "cuda"))(sum_of_tiles)
