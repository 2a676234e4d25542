"""Kernels of space_to_depth and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.shuffle._family import PLACES


@kernel("space_to_depth", place=PLACES, dtypes=ALL_DTYPES)
def space_to_depth(X: Array, *, blocksize: int) -> Array:
    """One transposition."""
    (n, c, h, w), b = X.shape, blocksize
    unfolded = X.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return unfolded.reshape(n, c * b * b, h // b, w // b).copy()


@kernel("space_to_depth_grad", place=PLACES, dtypes=ALL_DTYPES)
def space_to_depth_grad(X: ShapeOnly, Out_grad: Array, *, blocksize: int) -> Array:
    """The transposition back."""
    (n, c, h, w), b = X.shape, blocksize
    unfolded = Out_grad.reshape(n, c // (b * b), h, b, w, b).transpose(0, 3, 5, 1, 2, 4)
    return unfolded.reshape(n, c, h, w).copy()
