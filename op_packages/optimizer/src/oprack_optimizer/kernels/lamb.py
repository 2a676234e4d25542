"""Kernels of lamb."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, rounded, scalar, working
from oprack_optimizer.kernels.adam import powers, skipped


def _update(param, grad, lr, m1, m2, b1pow, b2pow, master, rule, multi_precision, xp):
    weight_decay, beta1, beta2, epsilon, always_adapt = rule
    p = working(param, master, multi_precision)
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    new1 = m1 * kind(beta1) + g * kind(1 - beta1)
    new2 = m2 * kind(beta2) + g * g * kind(1 - beta2)
    mean = new1 / (kind(1) - scalar(b1pow, p.dtype))
    square = new2 / (kind(1) - scalar(b2pow, p.dtype))
    update = mean / (xp.sqrt(square) + kind(epsilon)) + kind(weight_decay) * p
    rate = scalar(lr, p.dtype)
    if weight_decay > 0 or always_adapt:
        p_norm, u_norm = xp.sqrt((p * p).sum()), xp.sqrt((update * update).sum())
        trusted = (p_norm > 0) & (u_norm > 0)
        rate = rate * xp.where(trusted, p_norm / xp.where(trusted, u_norm, kind(1)), kind(1))
    out, new_master = rounded(p - rate * update, param, master, multi_precision)
    return out, new1, new2, *powers(b1pow, b2pow, beta1, beta2, False), new_master


@kernel("lamb", place=BOTH, dtypes=REALS)
def lamb(
    Param,
    Grad,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    *,
    weight_decay,
    beta1,
    beta2,
    epsilon,
    always_adapt,
    multi_precision,
    xp,
):
    state = Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam
    same = skipped(SkipUpdate, Param, *state)
    if same is not None:
        return same
    rule = weight_decay, beta1, beta2, epsilon, always_adapt
    return _update(Param, Grad, LearningRate, *state, rule, multi_precision, xp)


@kernel("lamb", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def lamb_rows(
    Param,
    Grad: SelectedRows,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    *,
    weight_decay,
    beta1,
    beta2,
    epsilon,
    always_adapt,
    multi_precision,
    xp,
):
    state = Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam
    same = skipped(SkipUpdate, Param, *state)
    if same is not None:
        return same
    rule = weight_decay, beta1, beta2, epsilon, always_adapt
    return _update(Param, dense(Grad, Moment1.dtype, xp), LearningRate, *state, rule, multi_precision, xp)
