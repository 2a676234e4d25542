"""Kernels of scatter."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("scatter", place=("cpu", "cuda"), deterministic={"cpu"})
def scatter(
    X: Array, Ids: Array, Updates: Array, *, overwrite: bool, out: Array | None = None, xp: ArrayModule
) -> Array:
    check_index("scatter", "Ids", Ids, len(X), xp)
    ids = Ids.reshape(-1)
    rows = Updates.reshape(len(ids), *X.shape[1:])
    out = X.copy() if out is None else out
    if overwrite:
        out[ids] = rows
    else:
        out[ids] = 0
        xp.add.at(out, ids, rows)
    return out


@kernel("scatter_grad", place=("cpu", "cuda"))
def scatter_grad(Ids: Array, Updates: ShapeOnly, Out_grad: Array, *, ctx: KernelContext) -> dict[str, Array]:
    ids = Ids.reshape(-1)
    x_grad = None
    if ctx.wants("X@GRAD"):
        x_grad = Out_grad.copy()
        x_grad[ids] = 0
    return {
        "X_grad": x_grad,
        "Updates_grad": Out_grad[ids].reshape(Updates.shape) if ctx.wants("Updates@GRAD") else None,
    }
