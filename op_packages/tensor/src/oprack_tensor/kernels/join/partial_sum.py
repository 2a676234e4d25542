"""Kernels of partial_sum and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_over
from oprack_tensor.ops.join._partial import columns_of


@kernel("partial_sum", place=("cpu", "cuda"))
def partial_sum(X: list[Array], *, start_index: int, length: int, xp: ArrayModule) -> Array:
    """The sum of the columns."""
    columns = columns_of(X[0].shape[1], start_index, length)
    return sum_over(xp.stack([x[:, columns] for x in X]), 0, xp)


@kernel("partial_sum_grad", place=("cpu", "cuda"))
def partial_sum_grad(
    X: list[ShapeOnly], Out_grad: Array, *, start_index: int, length: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Out@GRAD in the columns of each."""
    grads = []
    for k, x in enumerate(X):
        grad = xp.zeros(x.shape, Out_grad.dtype) if ctx.wants("X@GRAD", k) else None
        if grad is not None:
            grad[:, columns_of(x.shape[1], start_index, length)] = Out_grad
        grads.append(grad)
    return {"X@GRAD": grads}
