"""Kernels of take_along_axis."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels._index import check_index, grid


@kernel("take_along_axis", place=("cpu", "cuda"))
def take_along_axis(Input, Index, *, Axis, xp):
    check_index("take_along_axis", "Index", Index, Input.shape[Axis], xp, low=-Input.shape[Axis])
    return Input[grid(Index, Axis, xp)]


@kernel("take_along_axis_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def take_along_axis_grad(Input, Index, Result_grad, *, Axis, xp):
    grad = xp.zeros(Input.shape, Result_grad.dtype)
    xp.add.at(grad, grid(Index, Axis, xp), Result_grad)
    return grad
