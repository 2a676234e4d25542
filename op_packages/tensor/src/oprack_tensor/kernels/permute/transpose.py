"""Kernels of transpose: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.permute._inverse import inverse


@kernel("transpose", place=("cpu", "cuda"), view=True)
def transpose(X, *, axis):
    return X.transpose(axis)


@kernel("transpose_grad", place=("cpu", "cuda"), view=True)
def transpose_grad(Out_grad, *, axis):
    return Out_grad.transpose(inverse(axis, Out_grad.ndim))
