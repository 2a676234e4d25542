"""Kernels of fill_diagonal_tensor and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.kernels.diagonal._family import on_diagonal


def _filled(x: Array, values: Array, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    out = x.copy()
    matrices, where = on_diagonal(out, offset, dim1, dim2, xp)
    matrices[where] = values
    return out


@kernel("fill_diagonal_tensor", place=("cpu", "cuda"))
def fill_diagonal_tensor(X: Array, Y: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """X with Y on a diagonal."""
    return _filled(X, Y, offset, dim1, dim2, xp)


@kernel("fill_diagonal_tensor_grad", place=("cpu", "cuda"))
def fill_diagonal_tensor_grad(Out_grad: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """Out@GRAD with zeros there."""
    return _filled(Out_grad, 0, offset, dim1, dim2, xp)
