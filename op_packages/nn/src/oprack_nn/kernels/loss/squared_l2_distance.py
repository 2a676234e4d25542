"""Kernels of squared_l2_distance."""

from __future__ import annotations

import math

from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS


@kernel("squared_l2_distance", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance(X: Array, Y: Array) -> tuple[Array, Array]:
    size = math.prod(X.shape[1:])
    diff = X.reshape(len(X), size) - Y.reshape(len(Y), size)
    return diff, (diff * diff).sum(axis=1, keepdims=True)


@kernel("squared_l2_distance_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance_grad(
    X: ShapeOnly, Y: ShapeOnly, sub_result: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array]:
    dx = sub_result * (Out_grad.reshape(-1, 1) * sub_result.dtype.type(2))
    dy = None
    if ctx.wants("Y@GRAD"):
        dy = (-dx if Y.shape[0] == X.shape[0] else -dx.sum(axis=0)).reshape(Y.shape)
    return {"X@GRAD": dx.reshape(X.shape), "Y@GRAD": dy}
