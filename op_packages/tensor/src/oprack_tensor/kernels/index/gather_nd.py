"""Kernels of gather_nd."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import add_rows, check_index, columns


@kernel("gather_nd", place=("cpu", "cuda"))
def gather_nd(X: Array, Index: Array, *, xp: ArrayModule) -> Array:
    for axis, column in enumerate(columns(Index)):
        check_index("gather_nd", f"Index[..., {axis}]", column, X.shape[axis], xp, low=-X.shape[axis])
    if not Index.shape[-1]:
        return xp.broadcast_to(X, (*Index.shape[:-1], *X.shape)).copy()
    return xp.asarray(X[columns(Index)])


@kernel("gather_nd_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def gather_nd_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    add_rows(grad, Index, Out_grad, xp)
    return grad
