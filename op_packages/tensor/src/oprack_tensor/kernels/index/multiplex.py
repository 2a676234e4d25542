"""Kernels of multiplex and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("multiplex", place=("cpu", "cuda"))
def multiplex(X: list[Array], Ids: Array, *, xp: ArrayModule) -> Array:
    """Rows of several tensors."""
    ids = Ids.reshape(-1)
    check_index("multiplex", "Ids", ids, len(X), xp)
    return xp.stack(X)[ids, xp.arange(len(ids))]


@kernel("multiplex_grad", place=("cpu", "cuda"))
def multiplex_grad(
    X: list[ShapeOnly], Ids: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Each row of Out@GRAD to where it came from."""
    ids, grads = Ids.reshape(-1), []
    for k, x in enumerate(X):
        grad = None
        if ctx.wants("X@GRAD", k):
            grad = xp.zeros(x.shape, Out_grad.dtype)
            chosen = xp.nonzero(ids == k)[0]
            grad[chosen] = Out_grad[chosen]
        grads.append(grad)
    return {"X@GRAD": grads}
