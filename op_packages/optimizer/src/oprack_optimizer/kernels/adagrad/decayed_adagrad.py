"""Kernel of decayed_adagrad."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar


@kernel("decayed_adagrad", place=BOTH, dtypes=FLOATS)
def decayed_adagrad(
    Param: Array, Grad: Array, Moment: Array, LearningRate: Array, *, decay: float, epsilon: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = Param.dtype.type
    moment = Moment * kind(decay) + Grad * Grad * kind(1 - decay)
    return Param - scalar(LearningRate, Param.dtype) * Grad / (xp.sqrt(moment) + kind(epsilon)), moment
