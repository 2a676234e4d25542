"""Kernel of adamax."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, working


@kernel("adamax", place=BOTH, dtypes=REALS)
def adamax(
    Param,
    Grad,
    LearningRate,
    Moment,
    InfNorm,
    Beta1Pow,
    MasterParam=None,
    *,
    beta1,
    beta2,
    epsilon,
    multi_precision,
    xp,
):
    p = working(Param, MasterParam, multi_precision)
    kind = p.dtype.type
    g = Grad.astype(p.dtype, copy=False)
    moment = Moment * kind(beta1) + g * kind(1 - beta1)
    norm = xp.maximum(abs(g), InfNorm * kind(beta2) + kind(epsilon))
    rate = scalar(LearningRate, p.dtype) / (kind(1) - scalar(Beta1Pow, p.dtype))
    out, master = rounded(p - rate * (moment / norm), Param, MasterParam, multi_precision)
    return out, moment, norm, master
