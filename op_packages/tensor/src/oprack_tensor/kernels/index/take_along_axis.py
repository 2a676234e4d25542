"""Kernels of take_along_axis."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index, grid


@kernel("take_along_axis", place=("cpu", "cuda"))
def take_along_axis(Input: Array, Index: Array, *, Axis: int, xp: ArrayModule) -> Array:
    check_index("take_along_axis", "Index", Index, Input.shape[Axis], xp, low=-Input.shape[Axis])
    return Input[grid(Index, Axis, xp)]


@kernel("take_along_axis_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def take_along_axis_grad(Input: ShapeOnly, Index: Array, Result_grad: Array, *, Axis: int, xp: ArrayModule) -> Array:
    grad = xp.zeros(Input.shape, Result_grad.dtype)
    xp.add.at(grad, grid(Index, Axis, xp), Result_grad)
    return grad
