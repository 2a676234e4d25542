"""Kernel of adamax."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, working


@kernel("adamax", place=BOTH, dtypes=REALS)
def adamax(
    Param: Array,
    Grad: Array,
    LearningRate: Array,
    Moment: Array,
    InfNorm: Array,
    Beta1Pow: Array,
    MasterParam: Array | None = None,
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    p = working(Param, MasterParam, multi_precision)
    kind = p.dtype.type
    g = Grad.astype(p.dtype, copy=False)
    moment = Moment * kind(beta1) + g * kind(1 - beta1)
    norm = xp.maximum(abs(g), InfNorm * kind(beta2) + kind(epsilon))
    rate = scalar(LearningRate, p.dtype) / (kind(1) - scalar(Beta1Pow, p.dtype))
    out, master = rounded(p - rate * (moment / norm), Param, MasterParam, multi_precision)
    return out, moment, norm, master
