"""Kernels of rrelu."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS


@kernel("rrelu", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu(X, *, is_test, lower, upper, ctx, xp):
    kind = X.dtype.type
    if is_test:
        slope = kind((lower + upper) / 2)
    else:
        slope = xp.asarray(ctx.generator(0).uniform(lower, upper, X.shape)).astype(X.dtype)
    noise = xp.where(X >= 0, kind(1), slope)
    return X * noise, noise


@kernel("rrelu_grad", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu_grad(X, Noise, Out_grad, *, xp):
    return xp.multiply(Out_grad, Noise)
