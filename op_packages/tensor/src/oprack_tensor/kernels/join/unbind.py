"""Kernel of unbind: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_tensor.kernels.join._places import places


@kernel("unbind", place=("cpu", "cuda"), view=True)
def unbind(X: Array, *, axis: int) -> list[Array]:
    return places(X, axis)
