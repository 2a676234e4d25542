"""Kernels of softsign and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, NUMBERS


@kernel("softsign", place=BOTH, dtypes=NUMBERS)
def softsign(X: Array, *, xp: ArrayModule) -> Array:
    return X / (X.dtype.type(1) + abs(X))


@kernel("softsign_grad", place=BOTH, dtypes=NUMBERS)
def softsign_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    scale = X.dtype.type(1) + abs(X)
    return Out_grad / (scale * scale)
