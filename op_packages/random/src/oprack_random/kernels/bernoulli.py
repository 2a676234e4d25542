"""Kernel of bernoulli."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("bernoulli", place=("cpu", "cuda"), dtypes=FLOATS)
def bernoulli(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    if X.size and not (X.min() >= 0 and X.max() <= 1):
        raise InvalidArgumentError(
            f"op bernoulli: X has values from {X.min()} to {X.max()}; expected probabilities in [0, 1]"
        )
    return (xp.asarray(ctx.generator(0).random(X.shape)) < X).astype(X.dtype)
