"""Kernels of selu and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, negative_part


@kernel("selu", place=BOTH, dtypes=REALS)
def selu(X: Array, *, scale: float, alpha: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return xp.where(X > 0, kind(scale) * X, kind(scale * alpha) * xp.expm1(negative_part(X, xp)))


@kernel("selu_grad", place=BOTH, dtypes=REALS)
def selu_grad(Out: Array, Out_grad: Array, *, scale: float, alpha: float, xp: ArrayModule) -> Array:
    kind = Out.dtype.type
    return Out_grad * xp.where(Out > 0, kind(scale), Out + kind(scale * alpha))
