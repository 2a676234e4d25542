"""Kernels of rules with a rate for each element, by the squares of its gradients."""

from __future__ import annotations

from typing import NamedTuple

from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, REALS, dense, rounded, scalar, shrink, working


# adadelta -------------------------------------------------------------------------------------------------------------
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


# adagrad --------------------------------------------------------------------------------------------------------------
@kernel("adagrad", place=BOTH, dtypes=REALS)
def adagrad(
    Param: Array,
    Grad: Array,
    Moment: Array,
    LearningRate: Array,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    p = working(Param, MasterParam, multi_precision)
    g = Grad.astype(p.dtype, copy=False)
    moment = Moment + g * g
    new = p - scalar(LearningRate, p.dtype) * g / (xp.sqrt(moment) + p.dtype.type(epsilon))
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, moment, master


@kernel("adagrad", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adagrad_rows(
    Param: Array,
    Grad: SelectedRows,
    Moment: Array,
    LearningRate: Array,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    """Rows without a gradient keep their values, as they would with a gradient of 0."""
    p = working(Param, MasterParam, multi_precision)
    totals = row_totals(Grad, xp)
    rows, g = totals.rows, totals.value.astype(p.dtype, copy=False)
    new, moment = p.copy(), Moment.copy()
    moment[rows] += g * g
    new[rows] -= scalar(LearningRate, p.dtype) * g / (xp.sqrt(moment[rows]) + p.dtype.type(epsilon))
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, moment, master


# decayed_adagrad ------------------------------------------------------------------------------------------------------
@kernel("decayed_adagrad", place=BOTH, dtypes=FLOATS)
def decayed_adagrad(
    Param: Array, Grad: Array, Moment: Array, LearningRate: Array, *, decay: float, epsilon: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = Param.dtype.type
    moment = Moment * kind(decay) + Grad * Grad * kind(1 - decay)
    return Param - scalar(LearningRate, Param.dtype) * Grad / (xp.sqrt(moment) + kind(epsilon)), moment


# ftrl -----------------------------------------------------------------------------------------------------------------
class FtrlState(NamedTuple):
    """Inputs of ftrl besides the gradient."""

    Param: Array
    SquaredAccumulator: Array
    LinearAccumulator: Array
    LearningRate: Array


class FtrlRule(NamedTuple):
    """Attributes of ftrl."""

    l1: float
    l2: float
    lr_power: float


def _step(
    p: Array, squared: Array, linear: Array, g: Array, lr: Array, rule: FtrlRule, xp: ArrayModule
) -> tuple[Array, ...]:
    """(parameter, squared, linear) after one step."""
    kind, (l1, l2, lr_power) = p.dtype.type, rule

    def inverse_rate(a: Array) -> Array:
        return (xp.sqrt(a) if lr_power == -0.5 else a ** kind(-lr_power)) / lr

    total = squared + g * g
    z = linear + g - (inverse_rate(total) - inverse_rate(squared)) * p
    inside = (kind(l1) * xp.sign(z) - z) / (inverse_rate(total) + kind(2 * l2))
    return xp.where(abs(z) > l1, inside, kind(0)), total, z


@kernel("ftrl", place=BOTH, dtypes=FLOATS)
def ftrl(state: FtrlState, Grad: Array, *, rule: FtrlRule, xp: ArrayModule) -> tuple[Array, ...]:
    p, squared, linear, lr = state
    return _step(p, squared, linear, Grad, scalar(lr, p.dtype), rule, xp)


@kernel("ftrl", place=BOTH, dtypes=FLOATS, deterministic={"cpu"})
def ftrl_rows(state: FtrlState, Grad: SelectedRows, *, rule: FtrlRule, xp: ArrayModule) -> tuple[Array, ...]:
    """Rows without a gradient keep their values."""
    totals = row_totals(Grad, xp)
    rows, old = totals.rows, state[:3]
    lr = scalar(state.LearningRate, state.Param.dtype)
    p, squared, linear = (a[rows] for a in old)
    found = _step(p, squared, linear, totals.value, lr, rule, xp)
    new = tuple(a.copy() for a in old)
    for target, value in zip(new, found, strict=True):
        target[rows] = value
    return new


# proximal_adagrad -----------------------------------------------------------------------------------------------------
@kernel("proximal_adagrad", place=BOTH, dtypes=FLOATS)
def proximal_adagrad(
    Param: Array, Moment: Array, Grad: Array, LearningRate: Array, *, l1: float, l2: float, xp: ArrayModule
) -> tuple[Array, Array]:
    lr = scalar(LearningRate, Param.dtype)
    moment = Moment + Grad * Grad
    return shrink(Param - lr * Grad / xp.sqrt(moment), lr, l1, l2, xp), moment


# rmsprop --------------------------------------------------------------------------------------------------------------
class RmspropState(NamedTuple):
    """Inputs of rmsprop besides the gradient."""

    Param: Array
    MeanSquare: Array
    Moment: Array
    LearningRate: Array
    MeanGrad: Array | None = None
    MasterParam: Array | None = None


class RmspropRule(NamedTuple):
    """Attributes of rmsprop."""

    epsilon: float
    decay: float
    momentum: float
    centered: bool
    multi_precision: bool


def _update(state: RmspropState, grad: Array, rule: RmspropRule, xp: ArrayModule) -> tuple[Array | None, ...]:
    param, mean_square, moment, lr, mean_grad, master = state
    epsilon, decay, momentum, centered, multi_precision = rule
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
def rmsprop(state: RmspropState, Grad: Array, *, rule: RmspropRule, xp: ArrayModule) -> tuple[Array | None, ...]:
    return _update(state, Grad, rule, xp)


@kernel("rmsprop", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def rmsprop_rows(
    state: RmspropState, Grad: SelectedRows, *, rule: RmspropRule, xp: ArrayModule
) -> tuple[Array | None, ...]:
    return _update(state, dense(Grad, state.Moment.dtype, xp), rule, xp)
