"""Kernels of unsqueeze2: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import to_ints, unsqueeze_dims


@kernel("unsqueeze2", place=("cpu", "cuda"), view=True)
def unsqueeze2(X, AxesTensor=None, AxesTensorList=None, *, axes, xp):
    out = X.reshape(unsqueeze_dims("unsqueeze2", X.shape, to_ints(AxesTensor, AxesTensorList, axes)))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("unsqueeze2_grad", place=("cpu", "cuda"), view=True)
def unsqueeze2_grad(Out_grad, XShape):
    return Out_grad.reshape(XShape.shape[1:])
