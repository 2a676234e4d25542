"""Kernels of margin_rank_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("margin_rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss(X1: Array, X2: Array, Label: Array, *, margin: float, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X1.dtype.type
    loss = xp.maximum(kind(margin) - Label * (X1 - X2), kind(0))
    return (loss > 0).astype(X1.dtype), loss


@kernel("margin_rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss_grad(Activated: Array, Label: Array, Out_grad: Array, *, ctx: KernelContext) -> dict[str, Array]:
    dx2 = Out_grad * Activated * Label
    return {"X1@GRAD": -dx2 if ctx.wants("X1@GRAD") else None, "X2@GRAD": dx2}
