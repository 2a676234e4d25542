"""Kernels of squeeze2: views."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import squeeze_axes


@kernel("squeeze2", place=("cpu", "cuda"), view=True)
def squeeze2(X: Array, *, axes: list[int], xp: ArrayModule) -> tuple[Array, Array]:
    return X.squeeze(squeeze_axes("squeeze2", X.shape, axes)), xp.empty((0, *X.shape), X.dtype)


@kernel("squeeze2_grad", place=("cpu", "cuda"), view=True)
def squeeze2_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])
