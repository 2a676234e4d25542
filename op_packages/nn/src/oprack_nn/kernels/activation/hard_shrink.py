"""Kernels of hard_shrink and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("hard_shrink", place=BOTH, dtypes=REALS)
def hard_shrink(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(X, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)


@kernel("hard_shrink_grad", place=BOTH, dtypes=REALS)
def hard_shrink_grad(
    X: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return xp.multiply(Out_grad, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)
