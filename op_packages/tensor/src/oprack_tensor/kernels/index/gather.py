"""Kernels of gather."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("gather", place=("cpu", "cuda"))
def gather(X: Array, Index: Array, Axis: Array | None = None, *, axis: int, xp: ArrayModule) -> Array:
    axis = axis if Axis is None else int(Axis.reshape(-1)[0])
    check_index("gather", "Index", Index, X.shape[axis], xp)
    return xp.take(X, Index if Index.ndim < 2 else Index[:, 0], axis=axis)


@kernel("gather_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def gather_grad(
    X: ShapeOnly, Index: Array, Axis: Array | None = None, Out_grad: Array | None = None, *, axis: int, xp: ArrayModule
) -> Array:
    axis = axis if Axis is None else int(Axis.reshape(-1)[0])
    axis += X.ndim if axis < 0 else 0
    grad = xp.zeros(X.shape, Out_grad.dtype)
    index = Index if Index.ndim < 2 else Index[:, 0]
    xp.add.at(grad, (slice(None),) * axis + (index,), Out_grad)
    return grad
