"""First gradients of a normalisation by their formula, and second ones by differences of the first."""

from __future__ import annotations

import numpy as np

from .._slopes import by_difference

EPSILON = 1e-5


def first_gradients(x, scale, dy, axes, shape, stats=None):
    """(dx, dscale, dbias) of a normalisation over axes, or by fixed statistics."""
    sums = tuple(a for a in range(x.ndim) if shape[a] == 1)
    mean = x.mean(axis=axes, keepdims=True) if stats is None else stats[0].reshape(shape)
    var = x.var(axis=axes, keepdims=True) if stats is None else stats[1].reshape(shape)
    std = np.sqrt(var + EPSILON)
    xhat = (x - mean) / std
    g = dy * scale.reshape(shape)
    if stats is None:
        g = g - g.mean(axis=axes, keepdims=True) - xhat * (g * xhat).mean(axis=axes, keepdims=True)
    return g / std, (dy * xhat).sum(axis=sums), dy.sum(axis=sums)


def second_gradients(axes, stats):
    """x, scale, dy, ddx, ddscale, ddbias, and the gradients by x, scale and dy."""
    rng = np.random.default_rng(2)
    x, dy, ddx = (rng.standard_normal((2, 3, 2, 2)) for _ in range(3))
    scale, ddscale, ddbias = (rng.standard_normal(3) for _ in range(3))

    def loss(x=x, scale=scale, dy=dy):
        grads = first_gradients(x, scale, dy, axes, (1, 3, 1, 1), stats)
        return sum((a * b).sum() for a, b in zip((ddx, ddscale, ddbias), grads, strict=True))

    expected = [
        by_difference(lambda v: loss(x=v), x),
        by_difference(lambda v: loss(scale=v), scale),
        by_difference(lambda v: loss(dy=v), dy),
    ]
    return x, scale, dy, ddx, ddscale, ddbias, expected
