"""Kernel of exponential."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("exponential", place=("cpu", "cuda"), dtypes=FLOATS)
def exponential(X: Array, *, lambda_: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Waiting times of that rate."""
    return xp.asarray((ctx.generator(0).standard_exponential(tuple(X.shape)) / lambda_).astype(X.dtype))
