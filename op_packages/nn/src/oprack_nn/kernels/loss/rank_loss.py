"""Kernels of rank_loss."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import sigmoid, softplus


@kernel("rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss(Label, Left, Right, *, xp):
    gap = Left - Right
    return softplus(gap, xp) - Label * gap


@kernel("rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss_grad(Label, Left, Right, Out_grad, *, ctx, xp):
    dleft = Out_grad * (sigmoid(Left - Right, xp) - Label)
    return {"Left@GRAD": dleft, "Right@GRAD": -dleft if ctx.wants("Right@GRAD") else None}
