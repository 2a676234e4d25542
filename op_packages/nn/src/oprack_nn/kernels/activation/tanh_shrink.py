"""Kernels of tanh_shrink and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("tanh_shrink", place=BOTH, dtypes=REALS)
def tanh_shrink(X: Array, *, xp: ArrayModule) -> Array:
    return X - xp.tanh(X)


@kernel("tanh_shrink_grad", place=BOTH, dtypes=REALS)
def tanh_shrink_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    t = xp.tanh(X)
    return Out_grad * t * t
