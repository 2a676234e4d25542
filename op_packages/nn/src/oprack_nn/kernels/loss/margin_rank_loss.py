"""Kernels of margin_rank_loss."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS


@kernel("margin_rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss(X1, X2, Label, *, margin, xp):
    kind = X1.dtype.type
    loss = xp.maximum(kind(margin) - Label * (X1 - X2), kind(0))
    return (loss > 0).astype(X1.dtype), loss


@kernel("margin_rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss_grad(Activated, Label, Out_grad, *, ctx):
    dx2 = Out_grad * Activated * Label
    return {"X1@GRAD": -dx2 if ctx.wants("X1@GRAD") else None, "X2@GRAD": dx2}
