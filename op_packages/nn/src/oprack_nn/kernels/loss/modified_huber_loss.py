"""Kernels of modified_huber_loss and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


@kernel("modified_huber_loss", place=_PLACES, dtypes=FLOATS)
def modified_huber_loss(X: Array, Y: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X.dtype.type
    z = (kind(2) * Y - kind(1)) * X
    gap = xp.maximum(kind(1) - z, kind(0))
    return z, xp.where(z < -1, kind(-4) * z, gap * gap)


@kernel("modified_huber_loss_grad", place=_PLACES, dtypes=FLOATS)
def modified_huber_loss_grad(Y: Array, IntermediateVal: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    kind = IntermediateVal.dtype.type
    slope = kind(-2) * xp.minimum(xp.maximum(kind(1) - IntermediateVal, kind(0)), kind(2))
    return slope * (kind(2) * Y - kind(1)) * Out_grad
