"""Kernels of rmsprop."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, rounded, scalar, working


def _update(
    param: Array,
    mean_square: Array,
    grad: Array,
    moment: Array,
    lr: Array,
    mean_grad: Array | None,
    master: Array | None,
    rule: tuple[float, float, float, bool],
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    epsilon, decay, momentum, centered = rule
    p = working(param, master, multi_precision)
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    squares = mean_square * kind(decay) + g * g * kind(1 - decay)
    variance, means = squares, mean_grad
    if centered:
        means = mean_grad * kind(decay) + g * kind(1 - decay)
        variance = squares - means * means
    elif means is not None:
        means = means.copy()
    new_moment = moment * kind(momentum) + scalar(lr, p.dtype) * g / xp.sqrt(variance + kind(epsilon))
    out, new_master = rounded(p - new_moment, param, master, multi_precision)
    return out, new_moment, squares, means, new_master


@kernel("rmsprop", place=BOTH, dtypes=REALS)
def rmsprop(
    Param: Array,
    MeanSquare: Array,
    Grad: Array,
    Moment: Array,
    LearningRate: Array,
    MeanGrad: Array | None = None,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    decay: float,
    momentum: float,
    centered: bool,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    rule = epsilon, decay, momentum, centered
    state = MeanSquare, Grad, Moment, LearningRate, MeanGrad, MasterParam
    return _update(Param, *state, rule, multi_precision, xp)


@kernel("rmsprop", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def rmsprop_rows(
    Param: Array,
    MeanSquare: Array,
    Grad: SelectedRows,
    Moment: Array,
    LearningRate: Array,
    MeanGrad: Array | None = None,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    decay: float,
    momentum: float,
    centered: bool,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    rule = epsilon, decay, momentum, centered
    state = MeanSquare, dense(Grad, Moment.dtype, xp), Moment, LearningRate, MeanGrad, MasterParam
    return _update(Param, *state, rule, multi_precision, xp)
