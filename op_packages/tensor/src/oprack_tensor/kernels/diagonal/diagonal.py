"""Kernels of diagonal and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_tensor.kernels.diagonal._family import with_diagonal


@kernel("diagonal", place=("cpu", "cuda"))
def diagonal(Input: Any, *, offset: int, axis1: int, axis2: int, xp: Any) -> Any:
    """The elements of a diagonal, in memory of their own."""
    return xp.diagonal(Input, offset, axis1, axis2).copy()


@kernel("diagonal_grad", place=("cpu", "cuda"))
def diagonal_grad(Input: Any, Out_grad: Any, *, offset: int, axis1: int, axis2: int, xp: Any) -> Any:
    """Out@GRAD on the diagonal."""
    return with_diagonal(Input.shape, Out_grad, offset, axis1, axis2, xp)
