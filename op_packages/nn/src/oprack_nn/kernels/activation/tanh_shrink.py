"""Kernels of tanh_shrink and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("tanh_shrink", place=BOTH, dtypes=REALS)
def tanh_shrink(X, *, xp):
    return X - xp.tanh(X)


@kernel("tanh_shrink_grad", place=BOTH, dtypes=REALS)
def tanh_shrink_grad(X, Out_grad, *, xp):
    t = xp.tanh(X)
    return Out_grad * t * t
