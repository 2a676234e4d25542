"""Kernels of flatten2: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import product


@kernel("flatten2", place=("cpu", "cuda"), view=True)
def flatten2(X, *, axis, xp):
    axis = axis + X.ndim if axis < 0 else axis
    return X.reshape(product(X.shape[:axis]), product(X.shape[axis:])), xp.empty((0, *X.shape), X.dtype)


@kernel("flatten2_grad", place=("cpu", "cuda"), view=True)
def flatten2_grad(Out_grad, XShape):
    return Out_grad.reshape(XShape.shape[1:])
