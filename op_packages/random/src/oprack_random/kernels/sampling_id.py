"""Kernel of sampling_id."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("sampling_id", place=("cpu", "cuda"), dtypes=FLOATS)
def sampling_id(X: Array, *, min: float, max: float, seed: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """How many of the running sums each draw has passed."""
    drawn = xp.asarray(ctx.generator(seed).uniform(min, max, (len(X), 1)))
    passed = (xp.cumsum(X.astype(xp.float64), axis=1) <= drawn).sum(axis=1)
    return xp.minimum(passed, X.shape[1] - 1).astype(xp.int64)
