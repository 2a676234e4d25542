"""Kernels of squeeze2: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import squeeze_axes


@kernel("squeeze2", place=("cpu", "cuda"), view=True)
def squeeze2(X, *, axes, xp):
    return X.squeeze(squeeze_axes("squeeze2", X.shape, axes)), xp.empty((0, *X.shape), X.dtype)


@kernel("squeeze2_grad", place=("cpu", "cuda"), view=True)
def squeeze2_grad(Out_grad, XShape):
    return Out_grad.reshape(XShape.shape[1:])
