"""Kernels of log_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("log_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def log_loss(Predicted: Array, Labels: Array, *, epsilon: float, xp: ArrayModule) -> Array:
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return (Labels - one) * xp.log(one - Predicted + eps) - Labels * xp.log(Predicted + eps)


@kernel("log_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def log_loss_grad(Predicted: Array, Labels: Array, Loss_grad: Array, *, epsilon: float) -> Array:
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return Loss_grad * ((one - Labels) / (one - Predicted + eps) - Labels / (Predicted + eps))
