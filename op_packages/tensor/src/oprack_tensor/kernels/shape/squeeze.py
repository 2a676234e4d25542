"""Kernels of squeeze: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import squeeze_axes


@kernel("squeeze", place=("cpu", "cuda"), view=True)
def squeeze(X: Array, *, axes: list[int]) -> Array:
    return X.squeeze(squeeze_axes("squeeze", X.shape, axes))


@kernel("squeeze_grad", place=("cpu", "cuda"), view=True)
def squeeze_grad(Out_grad: Array, X: ShapeOnly) -> Array:
    return Out_grad.reshape(X.shape)
