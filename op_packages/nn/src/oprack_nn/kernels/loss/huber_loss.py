"""Kernels of huber_loss."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS


@kernel("huber_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss(X, Y, *, delta, xp):
    kind = X.dtype.type
    residual = Y - X
    size = abs(residual)
    loss = xp.where(size <= delta, kind(0.5) * size * size, kind(delta) * (size - kind(0.5 * delta)))
    return loss, residual


@kernel("huber_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss_grad(Residual, Out_grad, *, delta, ctx, xp):
    kind = Residual.dtype.type
    slope = xp.minimum(xp.maximum(Residual, kind(-delta)), kind(delta))
    return {
        "X@GRAD": -slope * Out_grad if ctx.wants("X@GRAD") else None,
        "Y@GRAD": slope * Out_grad if ctx.wants("Y@GRAD") else None,
    }
