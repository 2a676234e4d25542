"""Kernels of nanmedian and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL


def _split(shape: tuple[int, ...], axis: list[int]) -> tuple[list[int], list[int]]:
    """The dims that stay, and those that are reduced."""
    axes = axes_of(len(shape), axis, False)
    gone = list(range(len(shape))) if axes is None else sorted(axes)
    return [i for i in range(len(shape)) if i not in gone], gone


@kernel("nanmedian", place=BOTH, dtypes=REAL)
def nanmedian(X: Array, *, axis: list[int], keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """Half the sum of both middle elements, and where they are."""
    stay, gone = _split(X.shape, axis)
    rows = X.transpose(*stay, *gone).reshape(*(X.shape[i] for i in stay), math.prod(X.shape[i] for i in gone))
    shape = tuple(1 if i in gone else n for i, n in enumerate(X.shape)) if keepdim else rows.shape[:-1]
    if not rows.shape[-1]:
        nothing = math.nan if X.dtype.kind not in "iu" else 0
        return xp.full(shape, nothing, X.dtype), xp.full((*shape, 2), -1, xp.int64)
    order = xp.argsort(rows, axis=-1, kind="stable")
    count = (rows == rows).sum(axis=-1, keepdims=True)
    middle = xp.concatenate([xp.maximum(count - 1, 0) // 2, xp.minimum(count // 2, rows.shape[-1] - 1)], axis=-1)
    places = xp.take_along_axis(order, middle, axis=-1)
    wide = xp.take_along_axis(rows, places, axis=-1).astype(xp.float64)
    median = xp.where(wide[..., 0] == wide[..., 1], wide[..., 0], wide.mean(axis=-1))
    return median.astype(X.dtype).reshape(shape), xp.where(count > 0, places, -1).reshape((*shape, 2))


@kernel("nanmedian_grad", place=BOTH, dtypes=REAL)
def nanmedian_grad(X: ShapeOnly, MedianIndex: Array, Out_grad: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    """Shares of Out@GRAD at both places."""
    stay, gone = _split(X.shape, axis)
    dims = [X.shape[i] for i in (*stay, *gone)]
    lead = dims[: len(stay)]
    places, g = MedianIndex.reshape(*lead, 2), Out_grad.reshape(*lead, 1)
    here = xp.arange(math.prod(dims[len(stay) :]))
    hits = (here == places[..., :1]).astype(xp.int64) + (here == places[..., 1:])
    rows = (g * hits.astype(g.dtype) / g.dtype.type(2)).astype(g.dtype)
    back = sorted(range(X.ndim), key=[*stay, *gone].__getitem__)
    return xp.ascontiguousarray(rows.reshape(dims).transpose(back)).reshape(X.shape)
