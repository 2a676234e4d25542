"""Kernels of hard_swish and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip


@kernel("hard_swish", place=BOTH, dtypes=REALS)
def hard_swish(X: Array, *, threshold: float, scale: float, offset: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    y = xp.empty_like(X)
    xp.add(X, kind(offset), out=y)
    clip(y, 0.0, threshold, y, xp)
    y /= kind(scale)
    y *= X  # last, so that it overflows no sooner than the result
    return y


@kernel("hard_swish_grad", place=BOTH, dtypes=REALS)
def hard_swish_grad(
    X: Array, Out_grad: Array, *, threshold: float, scale: float, offset: float, xp: ArrayModule
) -> Array:
    kind = X.dtype.type
    shifted = X + kind(offset)
    slope = xp.where(shifted < threshold, (shifted > 0) * (X + shifted), kind(threshold))
    return Out_grad * slope / kind(scale)
