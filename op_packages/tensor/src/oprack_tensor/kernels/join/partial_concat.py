"""Kernels of partial_concat and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.ops.join._partial import columns_of


@kernel("partial_concat", place=("cpu", "cuda"))
def partial_concat(X: list[Array], *, start_index: int, length: int, xp: ArrayModule) -> Array:
    """The columns side by side."""
    columns = columns_of(X[0].shape[1], start_index, length)
    return xp.concatenate([x[:, columns] for x in X], axis=1)


@kernel("partial_concat_grad", place=("cpu", "cuda"))
def partial_concat_grad(
    X: list[ShapeOnly], Out_grad: Array, *, start_index: int, length: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Each part of Out@GRAD to where it came from."""
    columns, grads = columns_of(X[0].shape[1], start_index, length), []
    width = columns.stop - columns.start
    for k, x in enumerate(X):
        grad = xp.zeros(x.shape, Out_grad.dtype) if ctx.wants("X@GRAD", k) else None
        if grad is not None:
            grad[:, columns] = Out_grad[:, k * width : (k + 1) * width]
        grads.append(grad)
    return {"X@GRAD": grads}
