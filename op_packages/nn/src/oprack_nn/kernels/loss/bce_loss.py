"""Kernels of bce_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("bce_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def bce_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    one, floor = X.dtype.type(1), X.dtype.type(-100)
    hit = xp.maximum(xp.log(X), floor)
    miss = xp.maximum(xp.log(one - X), floor)
    return (Label - one) * miss - Label * hit


@kernel("bce_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def bce_loss_grad(X: Array, Label: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return Out_grad * (X - Label) / xp.maximum((kind(1) - X) * X, kind(1e-12))
