"""Kernels of unsqueeze: views."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import unsqueeze_dims


@kernel("unsqueeze", place=("cpu", "cuda"), view=True)
def unsqueeze(X: Array, *, axes: list[int]) -> Array:
    return X.reshape(unsqueeze_dims("unsqueeze", X.shape, axes))


@kernel("unsqueeze_grad", place=("cpu", "cuda"), view=True)
def unsqueeze_grad(Out_grad: Array, X: ShapeOnly) -> Array:
    return Out_grad.reshape(X.shape)
