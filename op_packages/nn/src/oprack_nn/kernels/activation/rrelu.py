"""Kernels of rrelu."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS, HALF_FLOATS


@kernel("rrelu", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu(
    X: Array, *, is_test: bool, lower: float, upper: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    if is_test:
        slope = kind((lower + upper) / 2)
    else:
        slope = xp.asarray(ctx.generator(0).uniform(lower, upper, X.shape)).astype(X.dtype)
    noise = xp.where(X >= 0, kind(1), slope)
    return X * noise, noise


@kernel("rrelu_grad", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu_grad(X: ShapeOnly, Noise: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, Noise)
