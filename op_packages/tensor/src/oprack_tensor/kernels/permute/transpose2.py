"""Kernels of transpose2: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.permute._inverse import inverse


@kernel("transpose2", place=("cpu", "cuda"), view=True)
def transpose2(X, *, axis, xp):
    return X.transpose(axis), xp.empty((0, *X.shape), X.dtype)


@kernel("transpose2_grad", place=("cpu", "cuda"), view=True)
def transpose2_grad(Out_grad, *, axis):
    return Out_grad.transpose(inverse(axis, Out_grad.ndim))
