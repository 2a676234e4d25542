"""Kernels of hinge_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("hinge_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def hinge_loss(Logits: Array, Labels: Array, *, xp: ArrayModule) -> Array:
    kind = Logits.dtype.type
    return xp.maximum(kind(1) - (kind(2) * Labels - kind(1)) * Logits, kind(0))


@kernel("hinge_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def hinge_loss_grad(Logits: Array, Labels: Array, Loss_grad: Array, *, xp: ArrayModule) -> Array:
    kind = Logits.dtype.type
    sign = kind(2) * Labels - kind(1)
    return xp.where(sign * Logits < 1, -sign * Loss_grad, kind(0))
