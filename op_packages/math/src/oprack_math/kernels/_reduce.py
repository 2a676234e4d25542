"""Axes of a reduction on arrays."""

from __future__ import annotations

import math


def axes_of(rank, dim, reduce_all):
    """Axes for NumPy's `axis`: None for all."""
    if reduce_all or not dim or not rank:
        return None
    return tuple(a % rank for a in dim)


def count_of(shape, axes):
    """Number of elements that are reduced to one."""
    return math.prod(shape if axes is None else (shape[a] for a in axes))


def kept(reduced, shape, axes):
    """A reduction's result, or its gradient, with the reduced dims back as 1."""
    if axes is None:
        return reduced.reshape((1,) * len(shape))
    return reduced.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def spread(values, like, axes, xp):
    """`values`, one per reduced element, at every element of `like`, in its dtype and shape."""
    result = xp.empty(like.shape, like.dtype)
    result[...] = kept(values, like.shape, axes)
    return result
