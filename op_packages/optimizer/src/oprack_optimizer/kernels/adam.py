"""Kernels of adam, adamw and merged_adam."""

from __future__ import annotations

from oprack.device import row_totals
from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, number, rounded, scalar, working


def step(p, grad, m1, m2, lr, b1pow, b2pow, beta1, beta2, epsilon, xp):
    """(parameter, moment 1, moment 2) after one step. lr, b1pow, b2pow: 0-d arrays."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    new1 = m1 * kind(beta1) + g * kind(1 - beta1)
    new2 = m2 * kind(beta2) + g * g * kind(1 - beta2)
    correction = xp.sqrt(kind(1) - b2pow)
    divisor = xp.sqrt(new2)
    divisor += kind(epsilon) * correction
    return p - new1 / divisor * (lr * correction / (kind(1) - b1pow)), new1, new2


def skipped(SkipUpdate, p, m1, m2, b1pow, b2pow, master):
    """The outputs that leave everything as it is, or None when the step is to be taken."""
    if SkipUpdate is None or not bool(SkipUpdate.reshape(-1)[0]):
        return None
    copies = [a.copy() for a in (p, m1, m2, b1pow, b2pow)]
    return (*copies, None if master is None else master.copy())


def powers(b1pow, b2pow, beta1, beta2, use_global):
    """Powers for the next step; with use_global another op updates them."""
    if use_global:
        return None, None
    return b1pow * b1pow.dtype.type(beta1), b2pow * b2pow.dtype.type(beta2)


def _lazy(p, grad, m1, m2, lr, b1, b2, rates, out, xp):
    """As `step`, in the rows that the gradient holds. out: the memory of p when it may be overwritten, else None."""
    totals = row_totals(grad, xp)
    rows = totals.rows
    new = p.copy() if out is None else out, m1.copy(), m2.copy()
    found = step(p[rows], totals.value, m1[rows], m2[rows], lr, b1, b2, *rates, xp)
    for target, value in zip(new, found, strict=True):
        target[rows] = value
    return new


def _update(param, grad, lr, m1, m2, b1pow, b2pow, master, rates, lazy, multi_precision, use_global, xp, out=None):
    p = working(param, master, multi_precision)
    scalars = scalar(lr, p.dtype), scalar(b1pow, p.dtype), scalar(b2pow, p.dtype)
    if isinstance(grad, SelectedRows):
        if lazy:
            new, new1, new2 = _lazy(p, grad, m1, m2, *scalars, rates, out if p is param else None, xp)
        else:
            new, new1, new2 = step(p, dense(grad, p.dtype, xp), m1, m2, *scalars, *rates, xp)
    else:
        new, new1, new2 = step(p, grad, m1, m2, *scalars, *rates, xp)
    out, new_master = rounded(new, param, master, multi_precision)
    return out, new1, new2, *powers(b1pow, b2pow, rates[0], rates[1], use_global), new_master


@kernel("adam", place=BOTH, dtypes=REALS)
def adam(
    Param,
    Grad,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    Beta1Tensor=None,
    Beta2Tensor=None,
    EpsilonTensor=None,
    *,
    beta1,
    beta2,
    epsilon,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    same = skipped(SkipUpdate, Param, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam)
    if same is not None:
        return same
    rates = number(Beta1Tensor, beta1), number(Beta2Tensor, beta2), number(EpsilonTensor, epsilon)
    state = Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam
    return _update(Param, Grad, LearningRate, *state, rates, False, multi_precision, use_global_beta_pow, xp)


@kernel("adam", place=BOTH, dtypes=REALS)
def adam_rows(
    Param,
    Grad: SelectedRows,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam=None,
    SkipUpdate=None,
    Beta1Tensor=None,
    Beta2Tensor=None,
    EpsilonTensor=None,
    *,
    beta1,
    beta2,
    epsilon,
    lazy_mode,
    multi_precision,
    use_global_beta_pow,
    out=None,
    xp,
):
    same = skipped(SkipUpdate, Param, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam)
    if same is not None:
        return same
    rates = number(Beta1Tensor, beta1), number(Beta2Tensor, beta2), number(EpsilonTensor, epsilon)
    state = Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam
    return _update(Param, Grad, LearningRate, *state, rates, lazy_mode, multi_precision, use_global_beta_pow, xp, out)


@kernel("merged_adam", place=BOTH, dtypes=REALS)
def merged_adam(
    Param,
    Grad,
    LearningRate,
    Moment1,
    Moment2,
    Beta1Pow,
    Beta2Pow,
    MasterParam,
    *,
    beta1,
    beta2,
    epsilon,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    found = []
    for i, param in enumerate(Param):
        lr = LearningRate[i if len(LearningRate) > 1 else 0]
        state = Moment1[i], Moment2[i], Beta1Pow[i], Beta2Pow[i], MasterParam[i] if MasterParam else None
        rates = beta1, beta2, epsilon
        found.append(_update(param, Grad[i], lr, *state, rates, False, multi_precision, use_global_beta_pow, xp))
    return tuple(list(values) for values in zip(*found, strict=True))
