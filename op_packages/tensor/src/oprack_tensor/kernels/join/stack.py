"""Kernels of stack."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.join._places import places


@kernel("stack", place=("cpu", "cuda"))
def stack(X, *, axis, xp):
    return xp.stack(X, axis=axis)


@kernel("stack_grad", place=("cpu", "cuda"), view=True)
def stack_grad(Y_grad, *, axis):
    return places(Y_grad, axis)
