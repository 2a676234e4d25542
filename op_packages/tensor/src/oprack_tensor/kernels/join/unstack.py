"""Kernels of unstack: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.join._places import places


@kernel("unstack", place=("cpu", "cuda"), view=True)
def unstack(X, *, axis):
    return places(X, axis)


@kernel("unstack_grad", place=("cpu", "cuda"))
def unstack_grad(Y_grad, *, axis, xp):
    return xp.stack(Y_grad, axis=axis)
