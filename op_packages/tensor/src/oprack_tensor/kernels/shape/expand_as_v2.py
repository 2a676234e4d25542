"""Kernels of expand_as_v2."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import broadcast_dims
from oprack_tensor.kernels._reduce import sum_to


@kernel("expand_as_v2", place=("cpu", "cuda"))
def expand_as_v2(X: Array, Y: ShapeOnly | None = None, *, target_shape: list[int], xp: ArrayModule) -> Array:
    dims = broadcast_dims("expand_as_v2", X.shape, target_shape if Y is None else Y.shape)
    return xp.broadcast_to(X, dims).copy()


@kernel("expand_as_v2_grad", place=("cpu", "cuda"))
def expand_as_v2_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return sum_to(Out_grad, X.shape, xp)
