"""Kernels of flatten: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import product


@kernel("flatten", place=("cpu", "cuda"), view=True)
def flatten(X: Array, *, axis: int) -> Array:
    """X as a matrix."""
    axis = axis + X.ndim if axis < 0 else axis
    return X.reshape(product(X.shape[:axis]), product(X.shape[axis:]))


@kernel("flatten_grad", place=("cpu", "cuda"))
def flatten_grad(X: ShapeOnly, Out_grad: Array) -> Array:
    """The gradient in the shape of X."""
    return Out_grad.reshape(X.shape).copy()
