"""Kernel of adadelta."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, working


@kernel("adadelta", place=BOTH, dtypes=REALS)
def adadelta(
    Param: Array,
    Grad: Array,
    AvgSquaredGrad: Array,
    AvgSquaredUpdate: Array,
    LearningRate: Array | None = None,
    MasterParam: Array | None = None,
    *,
    rho: float,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    p = working(Param, MasterParam, multi_precision)
    kind = p.dtype.type
    g = Grad.astype(p.dtype, copy=False)
    squares = AvgSquaredGrad * kind(rho) + g * g * kind(1 - rho)
    update = -xp.sqrt((AvgSquaredUpdate + kind(epsilon)) / (squares + kind(epsilon))) * g
    updates = AvgSquaredUpdate * kind(rho) + update * update * kind(1 - rho)
    rate = kind(1) if LearningRate is None else scalar(LearningRate, p.dtype)
    out, master = rounded(p + update * rate, Param, MasterParam, multi_precision)
    return out, squares, updates, master
