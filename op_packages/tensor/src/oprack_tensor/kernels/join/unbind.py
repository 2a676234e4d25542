"""Kernel of unbind: views."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.join._places import places


@kernel("unbind", place=("cpu", "cuda"), view=True)
def unbind(X, *, axis):
    return places(X, axis)
