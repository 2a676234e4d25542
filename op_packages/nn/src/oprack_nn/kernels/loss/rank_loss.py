"""Kernels of rank_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import sigmoid, softplus


@kernel("rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss(Label: Array, Left: Array, Right: Array, *, xp: ArrayModule) -> Array:
    gap = Left - Right
    return softplus(gap, xp) - Label * gap


@kernel("rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss_grad(
    Label: Array, Left: Array, Right: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    dleft = Out_grad * (sigmoid(Left - Right, xp) - Label)
    return {"Left@GRAD": dleft, "Right@GRAD": -dleft if ctx.wants("Right@GRAD") else None}
