"""Kernels of transpose: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_tensor.kernels.permute._inverse import inverse


@kernel("transpose", place=("cpu", "cuda"), view=True)
def transpose(X: Array, *, axis: list[int]) -> Array:
    return X.transpose(axis)


@kernel("transpose_grad", place=("cpu", "cuda"), view=True)
def transpose_grad(Out_grad: Array, *, axis: list[int]) -> Array:
    return Out_grad.transpose(inverse(axis, Out_grad.ndim))
