"""Axes of a reduction on arrays, and sums along them."""

from __future__ import annotations

import math

import numpy as np

from oprack_math.kernels._numeric import accumulator

_FEW_BEHIND = 128


def axes_of(rank, dim, reduce_all):
    """Axes for NumPy's `axis`: None for all."""
    if reduce_all or not dim or not rank:
        return None
    return tuple(a % rank for a in dim)


def total(x, axes, keep_dim, xp, dtype=None):
    """Sum over some dims, in `dtype` (default: that of x)."""
    if xp is np and axes is not None and len(axes) == 1 and dtype in (None, x.dtype) and x.flags.c_contiguous:
        (axis,) = axes
        before, n, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        # over a dim in the middle einsum adds in the same order as sum, and faster where few elements are behind it
        if axis != x.ndim - 1 and math.prod(behind) <= _FEW_BEHIND and x.dtype.char in "fd" and x.size:
            summed = np.einsum("ijk->ik", x.reshape(math.prod(before), n, -1))
            return summed.reshape((*before, 1, *behind) if keep_dim else (*before, *behind))
    return x.sum(axis=axes, dtype=dtype, keepdims=keep_dim)


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


def sum_over(x, axes, keep):
    """Sum over some dims in the dtype of x; 16-bit floats are added as float32."""
    return x.sum(axis=axes, dtype=accumulator(x.dtype), keepdims=keep).astype(x.dtype, copy=False)
