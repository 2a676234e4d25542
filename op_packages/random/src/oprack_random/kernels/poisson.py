"""Kernels of poisson and of its gradient."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

from oprack_random.kernels._zero_grad import zeros

_MOST = 1e18  # counts are drawn as integers of 64 bits


@kernel("poisson", dtypes=FLOATS)
def poisson(X: Array, *, ctx: KernelContext) -> Array:
    """Counts of these rates."""
    if X.size and not (X.min() >= 0 and X.max() <= _MOST):
        raise InvalidArgumentError(
            f"op poisson: X has values from {X.min()} to {X.max()}; expected rates from 0 to {_MOST:g}"
        )
    return ctx.generator(0).poisson(X).astype(X.dtype)


poisson_grad = kernel("poisson_grad", place=("cpu", "cuda"), dtypes=FLOATS)(zeros)
