"""Kernels of log_loss."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import quiet


@kernel("log_loss", place=("cpu", "cuda"), dtypes=FLOATS)
@quiet
def log_loss(Predicted, Labels, *, epsilon, xp):
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return (Labels - one) * xp.log(one - Predicted + eps) - Labels * xp.log(Predicted + eps)


@kernel("log_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
@quiet
def log_loss_grad(Predicted, Labels, Loss_grad, *, epsilon):
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return Loss_grad * ((one - Labels) / (one - Predicted + eps) - Labels / (Predicted + eps))
