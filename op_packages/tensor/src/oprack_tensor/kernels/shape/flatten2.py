"""Kernels of flatten2: views."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import product


@kernel("flatten2", place=("cpu", "cuda"), view=True)
def flatten2(X: Array, *, axis: int, xp: ArrayModule) -> tuple[Array, Array]:
    axis = axis + X.ndim if axis < 0 else axis
    return X.reshape(product(X.shape[:axis]), product(X.shape[axis:])), xp.empty((0, *X.shape), X.dtype)


@kernel("flatten2_grad", place=("cpu", "cuda"), view=True)
def flatten2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])
