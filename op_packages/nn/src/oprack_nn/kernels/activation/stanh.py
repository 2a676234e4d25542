"""Kernels of stanh and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, NUMBERS


@kernel("stanh", place=BOTH, dtypes=NUMBERS)
def stanh(X: Array, *, scale_a: float, scale_b: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return kind(scale_b) * xp.tanh(X * kind(scale_a))


@kernel("stanh_grad", place=BOTH, dtypes=NUMBERS)
def stanh_grad(X: Array, Out_grad: Array, *, scale_a: float, scale_b: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    t = xp.tanh(X * kind(scale_a))
    return Out_grad * xp.conj(kind(scale_a * scale_b) * (kind(1) - t * t))
