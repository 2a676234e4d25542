"""Kernels of diagonal and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels.diagonal._family import with_diagonal


@kernel("diagonal", place=("cpu", "cuda"))
def diagonal(Input: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """The elements of a diagonal, in memory of their own."""
    return xp.diagonal(Input, offset, axis1, axis2).copy()


@kernel("diagonal_grad", place=("cpu", "cuda"))
def diagonal_grad(Input: ShapeOnly, Out_grad: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Out@GRAD on the diagonal."""
    return with_diagonal(Input.shape, Out_grad, offset, axis1, axis2, xp)
