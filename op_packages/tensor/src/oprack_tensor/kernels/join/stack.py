"""Kernels of stack."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.kernels.join._places import places


@kernel("stack", place=("cpu", "cuda"))
def stack(X: list[Array], *, axis: int, xp: ArrayModule) -> Array:
    return xp.stack(X, axis=axis)


@kernel("stack_grad", place=("cpu", "cuda"), view=True)
def stack_grad(Y_grad: Array, *, axis: int) -> list[Array]:
    return places(Y_grad, axis)
