"""Kernel of proximal_adagrad."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar, shrink


@kernel("proximal_adagrad", place=BOTH, dtypes=FLOATS)
def proximal_adagrad(
    Param: Array, Moment: Array, Grad: Array, LearningRate: Array, *, l1: float, l2: float, xp: ArrayModule
) -> tuple[Array, Array]:
    lr = scalar(LearningRate, Param.dtype)
    moment = Moment + Grad * Grad
    return shrink(Param - lr * Grad / xp.sqrt(moment), lr, l1, l2, xp), moment
