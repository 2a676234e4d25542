"""Kernels of scatter_nd_add."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import add_rows, check_index, columns


@kernel("scatter_nd_add", place=("cpu", "cuda"), deterministic={"cpu"})
def scatter_nd_add(X: Array, Index: Array, Updates: Array, *, xp: ArrayModule) -> Array:
    for axis, column in enumerate(columns(Index)):
        check_index("scatter_nd_add", f"Index[..., {axis}]", column, X.shape[axis], xp, low=-X.shape[axis])
    out = X.copy()
    add_rows(out, Index, Updates, xp)
    return out


@kernel("scatter_nd_add_grad", place=("cpu", "cuda"))
def scatter_nd_add_grad(
    Index: Array, Updates: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    updates_grad = None
    if ctx.wants("Updates@GRAD"):
        updates_grad = xp.broadcast_to(Out_grad[columns(Index)], Updates.shape).copy()
    return {"X_grad": Out_grad.copy() if ctx.wants("X@GRAD") else None, "Updates_grad": updates_grad}
