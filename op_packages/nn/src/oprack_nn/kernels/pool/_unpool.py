"""Unpooling and its gradient, for any number of spatial dims."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.tensor import ShapeOnly


def _places(indices: Array, size: int, op_type: str, xp: ArrayModule) -> Array:
    """Indices [N, C, P] within [0, size); not looked at on a GPU, where it would wait for the device."""
    n, c = indices.shape[:2]
    if xp is np and indices.size and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)]
        raise InvalidArgumentError(
            f"op {op_type}: Indices holds {int(wrong[0])}; expected 0 <= index < {size}, the elements of a plane of "
            "Out: give the output_size that was pooled"
        )
    return indices.reshape(n, c, math.prod(indices.shape[2:])).astype("int64")


def _sizes(x: Array, output_size: list[int], ctx: KernelContext) -> tuple[int, ...]:
    if any(output_size):
        return tuple(int(s) for s in output_size)
    attrs = ctx.attrs
    steps = zip(x.shape[2:], attrs["ksize"], attrs["strides"], attrs["paddings"], strict=True)
    return tuple((s - 1) * t - 2 * p + k for s, k, t, p in steps)


def unpool(X: Array, Indices: Array, *, output_size: list[int], ctx: KernelContext, xp: ArrayModule) -> Array:
    """Every element of X at its place."""
    n, c = X.shape[:2]
    sizes = _sizes(X, output_size, ctx)
    places = _places(Indices, math.prod(sizes), ctx.op_type, xp)
    planes = xp.zeros((n, c, math.prod(sizes)), X.dtype)
    xp.put_along_axis(planes, places, X.reshape(places.shape), axis=2)
    return planes.reshape(n, c, *sizes)


def unpool_grad(
    X: ShapeOnly, Indices: Array, Out: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """What lies at the place of each element of X."""
    n, c, *sizes = Out_grad.shape
    places = _places(Indices, math.prod(sizes), ctx.op_type, xp)
    return xp.take_along_axis(Out_grad.reshape(n, c, math.prod(sizes)), places, axis=2).reshape(X.shape)
