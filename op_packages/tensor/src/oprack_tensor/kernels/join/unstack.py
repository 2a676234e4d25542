"""Kernels of unstack: views."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.kernels.join._places import places


@kernel("unstack", place=("cpu", "cuda"), view=True)
def unstack(X: Array, *, axis: int) -> list[Array]:
    return places(X, axis)


@kernel("unstack_grad", place=("cpu", "cuda"))
def unstack_grad(Y_grad: list[Array], *, axis: int, xp: ArrayModule) -> Array:
    return xp.stack(Y_grad, axis=axis)
