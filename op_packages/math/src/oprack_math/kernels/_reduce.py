"""Axes of a reduction on arrays, and sums along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule
from oprack.tensor import ShapeOnly

from oprack_math.kernels._numeric import accumulator

_FEW_BEHIND = 128


def axes_of(rank: int, dim: Sequence[int], reduce_all: bool) -> tuple[int, ...] | None:
    """Axes for NumPy's `axis`: None for all."""
    if reduce_all or not dim or not rank:
        return None
    return tuple(a % rank for a in dim)


def total(
    x: Array, axes: tuple[int, ...] | None, keep_dim: bool, xp: ArrayModule, dtype: np.dtype[Any] | None = None
) -> Array:
    """Sum over some dims, in `dtype` (default: that of x)."""
    if xp is np and axes is not None and len(axes) == 1 and dtype in (None, x.dtype) and x.flags.c_contiguous:
        (axis,) = axes
        before, n, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        # over a dim in the middle einsum adds in the same order as sum, and faster where few elements are behind it
        if axis != x.ndim - 1 and math.prod(behind) <= _FEW_BEHIND and x.dtype.char in "fd" and x.size:
            summed = np.einsum("ijk->ik", x.reshape(math.prod(before), n, -1))
            return summed.reshape((*before, 1, *behind) if keep_dim else (*before, *behind))
    return x.sum(axis=axes, dtype=dtype, keepdims=keep_dim)


def count_of(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> int:
    """Number of elements that are reduced to one."""
    return math.prod(shape if axes is None else (shape[a] for a in axes))


def kept(reduced: Array, shape: tuple[int, ...], axes: tuple[int, ...] | None) -> Array:
    """A reduction's result, or its gradient, with the reduced dims back as 1."""
    if axes is None:
        return reduced.reshape((1,) * len(shape))
    return reduced.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def spread(values: Array, like: ShapeOnly, axes: tuple[int, ...] | None, xp: ArrayModule) -> Array:
    """`values`, one per reduced element, at every element of `like`, in its dtype and shape."""
    result = xp.empty(like.shape, like.dtype)
    result[...] = kept(values, like.shape, axes)
    return result


def sum_over(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    """Sum over some dims in the dtype of x; 16-bit floats are added as float32."""
    return x.sum(axis=axes, dtype=accumulator(x.dtype), keepdims=keep).astype(x.dtype, copy=False)
