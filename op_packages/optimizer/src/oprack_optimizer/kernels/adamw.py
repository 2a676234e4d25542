"""Kernels of adamw: decoupled weight decay, then adam."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, number, rounded, scalar, working
from oprack_optimizer.kernels.adam import powers, skipped, step


def _decayed(p, lr, lr_ratio, coeff, with_decay):
    """Parameter and learning rate that adam's step starts from."""
    if not with_decay:
        return p, lr
    kind = p.dtype.type
    lr = lr * kind(lr_ratio)
    return p * (kind(1) - lr * kind(coeff)), lr


def _update(param, grad, lr, state, master, rates, decay, multi_precision, use_global, xp):
    m1, m2, b1pow, b2pow = state
    p = working(param, master, multi_precision)
    p, lr = _decayed(p, scalar(lr, p.dtype), *decay)
    g = grad if not isinstance(grad, SelectedRows) else dense(grad, p.dtype, xp)
    new, new1, new2 = step(p, g, m1, m2, lr, scalar(b1pow, p.dtype), scalar(b2pow, p.dtype), *rates, xp)
    out, new_master = rounded(new, param, master, multi_precision)
    return out, new1, new2, *powers(b1pow, b2pow, rates[0], rates[1], use_global), new_master


@kernel("adamw", place=BOTH, dtypes=REALS)
def adamw(
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
    lr_ratio,
    coeff,
    with_decay,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    state = Moment1, Moment2, Beta1Pow, Beta2Pow
    same = skipped(SkipUpdate, Param, *state, MasterParam)
    if same is not None:
        return same
    rates = number(Beta1Tensor, beta1), number(Beta2Tensor, beta2), number(EpsilonTensor, epsilon)
    decay = lr_ratio, coeff, with_decay
    return _update(
        Param, Grad, LearningRate, state, MasterParam, rates, decay, multi_precision, use_global_beta_pow, xp
    )


@kernel("adamw", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adamw_rows(
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
    lr_ratio,
    coeff,
    with_decay,
    multi_precision,
    use_global_beta_pow,
    xp,
):
    state = Moment1, Moment2, Beta1Pow, Beta2Pow
    same = skipped(SkipUpdate, Param, *state, MasterParam)
    if same is not None:
        return same
    rates = number(Beta1Tensor, beta1), number(Beta2Tensor, beta2), number(EpsilonTensor, epsilon)
    decay = lr_ratio, coeff, with_decay
    return _update(
        Param, Grad, LearningRate, state, MasterParam, rates, decay, multi_precision, use_global_beta_pow, xp
    )
