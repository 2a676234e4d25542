"""Kernels of expand_v2."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import broadcast_dims, to_ints
from oprack_tensor.kernels._reduce import sum_to


@kernel("expand_v2", place=("cpu", "cuda"))
def expand_v2(
    X: Array,
    Shape: Array | None = None,
    expand_shapes_tensor: list[Array] | None = None,
    *,
    shape: list[int],
    xp: ArrayModule,
) -> Array:
    dims = broadcast_dims("expand_v2", X.shape, to_ints(Shape, expand_shapes_tensor, shape))
    return xp.broadcast_to(X, dims).copy()


@kernel("expand_v2_grad", place=("cpu", "cuda"))
def expand_v2_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return sum_to(Out_grad, X.shape, xp)
