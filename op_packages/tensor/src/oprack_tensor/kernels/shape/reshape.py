"""Kernels of reshape: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import reshape_dims, to_ints


@kernel("reshape", place=("cpu", "cuda"), view=True)
def reshape(X: Array, Shape: Array | None = None, ShapeTensor: list[Array] | None = None, *, shape: list[int]) -> Array:
    return X.reshape(reshape_dims("reshape", X.shape, to_ints(None if ShapeTensor else Shape, ShapeTensor, shape)))


@kernel("reshape_grad", place=("cpu", "cuda"), view=True)
def reshape_grad(Out_grad: Array, X: ShapeOnly) -> dict[str, Array]:
    return {"X@GRAD": Out_grad.reshape(X.shape)}
