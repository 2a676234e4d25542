"""Kernels of softshrink and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("softshrink", place=BOTH, dtypes=REALS)
def softshrink(X: Array, *, lambda_: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return xp.where(X > lambda_, X - kind(lambda_), xp.where(X < -lambda_, X + kind(lambda_), X * kind(0)))


@kernel("softshrink_grad", place=BOTH, dtypes=REALS)
def softshrink_grad(X: Array, Out_grad: Array, *, lambda_: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, (X > lambda_) | (X < -lambda_), out=out, dtype=X.dtype)
