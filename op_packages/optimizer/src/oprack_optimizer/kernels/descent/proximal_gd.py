"""Kernel of proximal_gd."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar, shrink


@kernel("proximal_gd", place=BOTH, dtypes=FLOATS)
def proximal_gd(Param, Grad, LearningRate, *, l1, l2, xp):
    lr = scalar(LearningRate, Param.dtype)
    return shrink(Param - lr * Grad, lr, l1, l2, xp)
