"""Kernels of maxout."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


def _grouped(x: Array, axis: int, groups: int) -> tuple[Array, int]:
    """x with its channels split into (channels / groups, groups), and the dim of the groups."""
    axis %= x.ndim
    return x.reshape(*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :]), axis + 1


@kernel("maxout", place=("cpu", "cuda"), dtypes=FLOATS)
def maxout(X: Array, *, groups: int, axis: int) -> Array:
    x, dim = _grouped(X, axis, groups)
    return x.max(axis=dim)


@kernel("maxout_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def maxout_grad(X: Array, Out: Array, Out_grad: Array, *, groups: int, axis: int, xp: ArrayModule) -> Array:
    x, dim = _grouped(X, axis, groups)
    first = xp.expand_dims(x.argmax(axis=dim), dim)
    shape = [1] * x.ndim
    shape[dim] = groups
    hit = first == xp.arange(groups).reshape(shape)
    return xp.where(hit, xp.expand_dims(Out_grad, dim), X.dtype.type(0)).reshape(X.shape)
