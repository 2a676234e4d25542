"""Kernel of dirichlet."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS


@kernel("dirichlet", dtypes=FLOATS)
def dirichlet(Alpha: Array, *, ctx: KernelContext) -> Array:
    """Shares of gamma variables, by their logarithms, so that small ones do not all become 0."""
    if Alpha.size and not (Alpha.min() > 0 and np.isfinite(Alpha.max())):
        raise InvalidArgumentError(
            f"op dirichlet: Alpha has values from {Alpha.min()} to {Alpha.max()}; expected finite numbers above 0"
        )
    generator, alpha = ctx.generator(0), Alpha.astype(np.float64)
    # a variable of shape a is one of shape a + 1 times U^(1/a)
    logs = np.log(generator.standard_gamma(alpha + 1)) - generator.standard_exponential(alpha.shape) / alpha
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True, initial=-np.inf))
    return (shares / shares.sum(axis=-1, keepdims=True)).astype(Alpha.dtype)
