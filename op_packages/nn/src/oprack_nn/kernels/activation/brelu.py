"""Kernels of brelu and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip, inside


@kernel("brelu", place=BOTH, dtypes=REALS)
def brelu(X: Array, *, t_min: float, t_max: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return clip(X, t_min, t_max, out, xp)


@kernel("brelu_grad", place=BOTH, dtypes=REALS)
def brelu_grad(
    X: Array, Out_grad: Array, *, t_min: float, t_max: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return inside(X, Out_grad, t_min, t_max, out, xp)
