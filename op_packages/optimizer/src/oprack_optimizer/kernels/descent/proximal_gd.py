"""Kernel of proximal_gd."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar, shrink


@kernel("proximal_gd", place=BOTH, dtypes=FLOATS)
def proximal_gd(Param: Array, Grad: Array, LearningRate: Array, *, l1: float, l2: float, xp: ArrayModule) -> Array:
    lr = scalar(LearningRate, Param.dtype)
    return shrink(Param - lr * Grad, lr, l1, l2, xp)
