"""Kernels of kldiv_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS


def _divisor(x: Array | ShapeOnly, reduction: str) -> int:
    """What the sum of the losses is divided by."""
    if reduction == "batchmean":
        return x.shape[0] if x.ndim else 1
    return x.size if reduction == "mean" else 1


@kernel("kldiv_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def kldiv_loss(X: Array, Target: Array, *, reduction: str, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    positive = Target > 0
    loss = xp.where(positive, Target * (xp.log(xp.where(positive, Target, kind(1))) - X), kind(0))
    if reduction == "none":
        return loss
    return loss.sum() / kind(max(_divisor(X, reduction), 1))


@kernel("kldiv_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def kldiv_loss_grad(X: ShapeOnly, Target: Array, Loss_grad: Array, *, reduction: str, xp: ArrayModule) -> Array:
    kind = Target.dtype.type
    dx = xp.where(Target > 0, -Target, kind(0)) * Loss_grad.reshape(X.shape if reduction == "none" else ())
    return dx / kind(max(_divisor(X, reduction), 1))
