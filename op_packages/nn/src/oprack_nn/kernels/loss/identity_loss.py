"""Kernels of identity_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS


@kernel("identity_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def identity_loss(X: Array, *, reduction: int) -> Array:
    if reduction == 2:
        return X.copy()
    total = X.sum()
    return total if reduction == 0 else total / X.dtype.type(X.size)


@kernel("identity_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def identity_loss_grad(X: ShapeOnly, Out_grad: Array, *, reduction: int, xp: ArrayModule) -> Array:
    if reduction == 2:
        return Out_grad.copy()
    share = Out_grad if reduction == 0 else Out_grad / X.dtype.type(max(X.size, 1))
    return xp.full(X.shape, share.reshape(()), X.dtype)
