"""Kernels of squared_l2_distance."""

from __future__ import annotations

import math

from oprack.kernel import kernel
from oprack.types import FLOATS


@kernel("squared_l2_distance", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance(X, Y):
    size = math.prod(X.shape[1:])
    diff = X.reshape(len(X), size) - Y.reshape(len(Y), size)
    return diff, (diff * diff).sum(axis=1, keepdims=True)


@kernel("squared_l2_distance_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance_grad(X, Y, sub_result, Out_grad, *, ctx):
    dx = sub_result * (Out_grad.reshape(-1, 1) * sub_result.dtype.type(2))
    dy = None
    if ctx.wants("Y@GRAD"):
        dy = (-dx if Y.shape[0] == X.shape[0] else -dx.sum(axis=0)).reshape(Y.shape)
    return {"X@GRAD": dx.reshape(X.shape), "Y@GRAD": dy}
