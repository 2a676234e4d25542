"""Kernels of adam, adamw and merged_adam."""

from __future__ import annotations

import numpy as np
from oprack.device import row_totals
from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, by_blocks, dense, is_large, number, rounded, scalar, working


def step(p, grad, m1, m2, lr, b1pow, b2pow, beta1, beta2, epsilon, xp, out=None):
    """(parameter, moment 1, moment 2) after one step. lr, b1pow, b2pow: 0-d arrays. out: memory that p may have."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    correction = xp.sqrt(kind(1) - b2pow)
    numbers = (kind(beta1), kind(1 - beta1), kind(beta2), kind(1 - beta2))
    numbers = (*numbers, kind(epsilon) * correction, lr * correction / (kind(1) - b1pow))
    if is_large(p):
        return by_blocks(lambda *blocks: _update_block(*blocks, *numbers), (p, g, m1, m2), 3, out)
    return _update_whole(p, g, m1, m2, *numbers, xp)


def _update_whole(p, g, m1, m2, keep1, add1, keep2, add2, epsilon, rate, xp):
    new1 = m1 * keep1 + g * add1
    new2 = m2 * keep2 + g * g * add2
    divisor = xp.sqrt(new2)
    divisor += epsilon
    return p - new1 / divisor * rate, new1, new2


def _update_block(given, made, work, keep1, add1, keep2, add2, epsilon, rate):
    """The same operations in the same order."""
    (p, g, m1, m2), (new, new1, new2) = given, made
    np.multiply(m1, keep1, out=new1)
    new1 += np.multiply(g, add1, out=work)
    np.multiply(g, g, out=work)
    work *= add2
    np.multiply(m2, keep2, out=new2)
    new2 += work
    np.sqrt(new2, out=work)
    work += epsilon
    np.divide(new1, work, out=work)
    work *= rate
    np.subtract(p, work, out=new)


def skipped(SkipUpdate, p, m1, m2, b1pow, b2pow, master):
    """The outputs that leave everything as it is, or None when the step is to be taken."""
    if SkipUpdate is None or not bool(SkipUpdate.reshape(-1)[0]):
        return None
    copies = [a.copy() for a in (p, m1, m2, b1pow, b2pow)]
    return (*copies, None if master is None else master.copy())


def powers(b1pow, b2pow, beta1, beta2, use_global):
    """Powers for the next step; with use_global another op updates them."""
    if use_global:
        return b1pow.copy(), b2pow.copy()
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
        new, new1, new2 = step(p, grad, m1, m2, *scalars, *rates, xp, out if p is param else None)
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
    out=None,
    xp,
):
    same = skipped(SkipUpdate, Param, Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam)
    if same is not None:
        return same
    rates = number(Beta1Tensor, beta1), number(Beta2Tensor, beta2), number(EpsilonTensor, epsilon)
    state = Moment1, Moment2, Beta1Pow, Beta2Pow, MasterParam
    return _update(Param, Grad, LearningRate, *state, rates, False, multi_precision, use_global_beta_pow, xp, out)


@kernel("adam", place=BOTH, dtypes=REALS, deterministic={"cpu"})
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
