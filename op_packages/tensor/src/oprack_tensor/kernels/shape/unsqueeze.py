"""Kernels of unsqueeze: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import unsqueeze_dims


@kernel("unsqueeze", place=("cpu", "cuda"), view=True)
def unsqueeze(X, *, axes):
    return X.reshape(unsqueeze_dims("unsqueeze", X.shape, axes))


@kernel("unsqueeze_grad", place=("cpu", "cuda"), view=True)
def unsqueeze_grad(Out_grad, X):
    return Out_grad.reshape(X.shape)
