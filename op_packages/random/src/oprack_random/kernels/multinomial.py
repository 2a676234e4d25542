"""Kernel of multinomial."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS


@kernel("multinomial", dtypes=FLOATS)
def multinomial(X: Array, *, num_samples: int, replacement: bool, ctx: KernelContext) -> Array:
    weights = X.reshape(-1, X.shape[-1]).astype(np.float64)
    if num_samples < 1:
        raise InvalidArgumentError(f"op multinomial: num_samples is {num_samples}; expected at least 1")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()):
        raise InvalidArgumentError(
            "op multinomial: X has a weight that is negative or not finite, or a row of zeros; "
            "expected weights >= 0 with a positive sum in each row"
        )
    generator = ctx.generator(0)
    drawn = _with(weights, num_samples, generator) if replacement else _without(weights, num_samples, generator)
    return drawn.astype(np.int64).reshape(*X.shape[:-1], num_samples)


def _with(weights: Array, k: int, generator: np.random.Generator) -> Array:
    """Inverts the cumulated shares; row i's lie in [i, i + 1), so that one sorted list serves all rows."""
    rows, classes = weights.shape
    shares = np.cumsum(weights, axis=1)
    shares /= shares[:, -1:]
    row = np.arange(rows)[:, None]
    flat = (shares + row).reshape(-1)
    found = np.searchsorted(flat, generator.random((rows, k)) + row, side="right") - row * classes
    # rounding of the last share may lead past the last class that has a weight
    last = classes - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
    return np.minimum(found, last[:, None])


def _without(weights: Array, k: int, generator: np.random.Generator) -> Array:
    """The k classes whose exponential clocks, of rate weight, ring first."""
    fewest = int((weights > 0).sum(axis=1).min())
    if k > fewest:
        raise InvalidArgumentError(
            f"op multinomial: num_samples is {k} but a row of X has {fewest} weights above 0; expected at most as many "
            "without replacement"
        )
    with np.errstate(divide="ignore"):
        times = np.where(weights > 0, generator.standard_exponential(weights.shape) / weights, np.inf)
    return np.argsort(times, axis=1, kind="stable")[:, :k]
