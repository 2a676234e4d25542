"""Kernels of huber_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("huber_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss(X: Array, Y: Array, *, delta: float, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X.dtype.type
    residual = Y - X
    size = abs(residual)
    loss = xp.where(size <= delta, kind(0.5) * size * size, kind(delta) * (size - kind(0.5 * delta)))
    return loss, residual


@kernel("huber_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss_grad(
    Residual: Array, Out_grad: Array, *, delta: float, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | None]:
    kind = Residual.dtype.type
    slope = xp.minimum(xp.maximum(Residual, kind(-delta)), kind(delta))
    return {
        "X@GRAD": -slope * Out_grad if ctx.wants("X@GRAD") else None,
        "Y@GRAD": slope * Out_grad if ctx.wants("Y@GRAD") else None,
    }
