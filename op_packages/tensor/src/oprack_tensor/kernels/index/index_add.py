"""Kernels of index_add and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("index_add", place=("cpu", "cuda"), deterministic={"cpu"})
def index_add(
    X: Array, Index: Array, AddValue: Array, *, axis: int, out: Array | None = None, xp: ArrayModule
) -> Array:
    """X, and AddValue added at the places Index."""
    check_index("index_add", "Index", Index, X.shape[axis], xp, low=-X.shape[axis])
    out = X.copy() if out is None else out
    xp.add.at(out, (slice(None),) * (axis % X.ndim) + (Index,), AddValue)
    return out


@kernel("index_add_grad", place=("cpu", "cuda"))
def index_add_grad(
    Index: Array, AddValue: ShapeOnly, Out_grad: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Out@GRAD for X, its parts at Index for AddValue."""
    by_value = xp.take(Out_grad, Index, axis=axis) if ctx.wants("AddValue@GRAD") else None
    return {"X_grad": Out_grad.copy() if ctx.wants("X@GRAD") else None, "AddValue_grad": by_value}
