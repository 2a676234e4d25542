"""Kernels of adam and the rules derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule, kernel
from oprack.kernel.commit import Commit
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, by_blocks, dense, is_large, number, rounded, scalar, working
from oprack_optimizer.ops._state import AdamRule, AdamState


# shared ---------------------------------------------------------------------------------------------------------------
# The step of adam, adamw and merged_adam; lamb shares its powers and when it is skipped.
def step(
    p: Array,
    grad: Array,
    m1: Array,
    m2: Array,
    lr: Array,
    b1pow: Array,
    b2pow: Array,
    beta1: float,
    beta2: float,
    epsilon: float,
    xp: ArrayModule,
    out: Array | None = None,
    others: Sequence[Array | None] = (),
    commit: Commit | None = None,
) -> tuple[Array, ...]:
    """(parameter, moment 1, moment 2) after one step. lr, b1pow, b2pow: 0-d arrays. The last three: as in by_blocks."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    correction = xp.sqrt(kind(1) - b2pow)
    shares = (kind(beta1), kind(1 - beta1), kind(beta2), kind(1 - beta2))
    numbers = (*shares, kind(epsilon) * correction, lr * correction / (kind(1) - b1pow))
    if is_large(p):

        def block(given: Sequence[Array], made: Sequence[Array], work: Array) -> None:
            _update_block(given, made, work, *numbers)

        return by_blocks(block, (p, g, m1, m2), 3, out, others, commit)
    return _update_whole(p, g, m1, m2, *numbers, xp)


def _update_whole(
    p: Array,
    g: Array,
    m1: Array,
    m2: Array,
    keep1: float,
    add1: float,
    keep2: float,
    add2: float,
    epsilon: Array,
    rate: Array,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    new1 = m1 * keep1 + g * add1
    new2 = m2 * keep2 + g * g * add2
    divisor = xp.sqrt(new2)
    divisor += epsilon
    return p - new1 / divisor * rate, new1, new2


def _update_block(
    given: Sequence[Array],
    made: Sequence[Array],
    work: Array,
    keep1: float,
    add1: float,
    keep2: float,
    add2: float,
    epsilon: float,
    rate: float,
) -> None:
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


def skipped(param: Array, state: AdamState) -> tuple[Array | None, ...] | None:
    """The outputs that leave everything as it is, or None when the step is to be taken."""
    if state.SkipUpdate is None or not bool(state.SkipUpdate.reshape(-1)[0]):
        return None
    copies = [a.copy() for a in (param, state.Moment1, state.Moment2, state.Beta1Pow, state.Beta2Pow)]
    return (*copies, None if state.MasterParam is None else state.MasterParam.copy())


def rates_of(state: AdamState, rule: AdamRule) -> tuple[float, float, float]:
    """(beta1, beta2, epsilon), which one-element tensors may override."""
    beta1, beta2 = number(state.Beta1Tensor, rule.beta1), number(state.Beta2Tensor, rule.beta2)
    return beta1, beta2, number(state.EpsilonTensor, rule.epsilon)


def powers(state: AdamState, rates: tuple[float, ...], rule: AdamRule) -> tuple[Array, Array]:
    """Powers for the next step; with use_global_beta_pow another op updates them."""
    b1pow, b2pow = state.Beta1Pow, state.Beta2Pow
    if rule.use_global_beta_pow:
        return b1pow.copy(), b2pow.copy()
    return b1pow * b1pow.dtype.type(rates[0]), b2pow * b2pow.dtype.type(rates[1])


def _lazy(
    p: Array,
    grad: SelectedRows,
    m1: Array,
    m2: Array,
    lr: Array,
    b1: Array,
    b2: Array,
    rates: tuple[float, float, float],
    out: Array | None,
    others: Sequence[Array | None],
    commit: Commit,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """As `step`, in the rows that the gradient holds. out: the memory of p when it may be overwritten, else None."""
    totals = row_totals(grad, xp)
    rows = totals.rows
    new = p.copy() if out is None else out, m1.copy(), m2.copy()
    found = step(p[rows], totals.value, m1[rows], m2[rows], lr, b1, b2, *rates, xp)
    for target, value in zip(new[1:], found[1:], strict=True):
        target[rows] = value
    commit.result = (*new, *others)
    commit(new[0].__setitem__, rows, found[0])
    return new


def update(
    param: Array,
    grad: Array | SelectedRows,
    state: AdamState,
    rule: AdamRule,
    xp: ArrayModule,
    out: Array | None = None,
    lazy: bool = False,
) -> tuple[Array | None, ...]:
    """The outputs of the op. out: memory that the parameter may have; lazy: only the rows of the gradient."""
    same = skipped(param, state)
    if same is not None:
        return same
    rates, master = rates_of(state, rule), state.MasterParam
    p = working(param, master, rule.multi_precision)
    m1, m2 = state.Moment1, state.Moment2
    dtype = p.dtype
    scalars = scalar(state.LearningRate, dtype), scalar(state.Beta1Pow, dtype), scalar(state.Beta2Pow, dtype)
    out = out if p is param else None
    new_powers = powers(state, rates, rule)
    others, commit = (*new_powers, None), Commit()  # where the parameter itself is overwritten
    if not isinstance(grad, SelectedRows):
        new, new1, new2 = step(p, grad, m1, m2, *scalars, *rates, xp, out, others, commit)
    elif lazy:
        new, new1, new2 = _lazy(p, grad, m1, m2, *scalars, rates, out, others, commit, xp)
    else:
        new, new1, new2 = step(p, dense(grad, p.dtype, xp), m1, m2, *scalars, *rates, xp)
    out, new_master = rounded(new, param, master, rule.multi_precision)
    return out, new1, new2, *new_powers, new_master


# adam -----------------------------------------------------------------------------------------------------------------
@kernel("adam", place=BOTH, dtypes=REALS)
def adam(
    Param: Array, Grad: Array, state: AdamState, *, rule: AdamRule, out: Array | None = None, xp: ArrayModule
) -> tuple[Array | None, ...]:
    return update(Param, Grad, state, rule, xp, out)


@kernel("adam", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adam_rows(
    Param: Array,
    Grad: SelectedRows,
    state: AdamState,
    *,
    rule: AdamRule,
    lazy_mode: bool,
    out: Array | None = None,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return update(Param, Grad, state, rule, xp, out, lazy_mode)


# adamax ---------------------------------------------------------------------------------------------------------------
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


# adamw ----------------------------------------------------------------------------------------------------------------
# Kernels of adamw: decoupled weight decay, then adam.
class Decay(NamedTuple):
    """Attributes of adamw besides those of adam."""

    lr_ratio: float
    coeff: float
    with_decay: bool


def _decayed(p: Array, lr: Array, decay: Decay) -> tuple[Array, Array]:
    """Parameter and learning rate that adam's step starts from."""
    if not decay.with_decay:
        return p, lr
    kind = p.dtype.type
    lr = lr * kind(decay.lr_ratio)
    return p * (kind(1) - lr * kind(decay.coeff)), lr


def _update(
    param: Array,
    grad: Array | SelectedRows,
    state: AdamState,
    rule: AdamRule,
    decay: Decay,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    same = skipped(param, state)
    if same is not None:
        return same
    rates = rates_of(state, rule)
    p = working(param, state.MasterParam, rule.multi_precision)
    p, lr = _decayed(p, scalar(state.LearningRate, p.dtype), decay)
    g = grad if not isinstance(grad, SelectedRows) else dense(grad, p.dtype, xp)
    b1pow, b2pow = scalar(state.Beta1Pow, p.dtype), scalar(state.Beta2Pow, p.dtype)
    new, new1, new2 = step(p, g, state.Moment1, state.Moment2, lr, b1pow, b2pow, *rates, xp)
    out, new_master = rounded(new, param, state.MasterParam, rule.multi_precision)
    return out, new1, new2, *powers(state, rates, rule), new_master


@kernel("adamw", place=BOTH, dtypes=REALS)
def adamw(
    Param: Array, Grad: Array, state: AdamState, *, rule: AdamRule, decay: Decay, xp: ArrayModule
) -> tuple[Array | None, ...]:
    return _update(Param, Grad, state, rule, decay, xp)


@kernel("adamw", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adamw_rows(
    Param: Array, Grad: SelectedRows, state: AdamState, *, rule: AdamRule, decay: Decay, xp: ArrayModule
) -> tuple[Array | None, ...]:
    return _update(Param, Grad, state, rule, decay, xp)


# lamb -----------------------------------------------------------------------------------------------------------------
def _lamb_update(
    param: Array,
    grad: Array | SelectedRows,
    state: AdamState,
    rule: AdamRule,
    weight_decay: float,
    always_adapt: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    same = skipped(param, state)
    if same is not None:
        return same
    p = working(param, state.MasterParam, rule.multi_precision)
    kind = p.dtype.type
    if isinstance(grad, SelectedRows):
        grad = dense(grad, state.Moment1.dtype, xp)
    g = grad.astype(p.dtype, copy=False)
    new1 = state.Moment1 * kind(rule.beta1) + g * kind(1 - rule.beta1)
    new2 = state.Moment2 * kind(rule.beta2) + g * g * kind(1 - rule.beta2)
    mean = new1 / (kind(1) - scalar(state.Beta1Pow, p.dtype))
    square = new2 / (kind(1) - scalar(state.Beta2Pow, p.dtype))
    update = mean / (xp.sqrt(square) + kind(rule.epsilon)) + kind(weight_decay) * p
    rate = scalar(state.LearningRate, p.dtype)
    if weight_decay > 0 or always_adapt:
        p_norm, u_norm = xp.sqrt((p * p).sum()), xp.sqrt((update * update).sum())
        trusted = (p_norm > 0) & (u_norm > 0)
        rate = rate * xp.where(trusted, p_norm / xp.where(trusted, u_norm, kind(1)), kind(1))
    out, new_master = rounded(p - rate * update, param, state.MasterParam, rule.multi_precision)
    return out, new1, new2, *powers(state, (rule.beta1, rule.beta2), rule), new_master


@kernel("lamb", place=BOTH, dtypes=REALS)
def lamb(
    Param: Array,
    Grad: Array,
    state: AdamState,
    *,
    rule: AdamRule,
    weight_decay: float,
    always_adapt: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return _lamb_update(Param, Grad, state, rule, weight_decay, always_adapt, xp)


@kernel("lamb", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def lamb_rows(
    Param: Array,
    Grad: SelectedRows,
    state: AdamState,
    *,
    rule: AdamRule,
    weight_decay: float,
    always_adapt: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return _lamb_update(Param, Grad, state, rule, weight_decay, always_adapt, xp)


# merged_adam ----------------------------------------------------------------------------------------------------------
@kernel("merged_adam", place=BOTH, dtypes=REALS)
def merged_adam(
    Param: list[Array], Grad: list[Array], states: AdamState, *, rule: AdamRule, xp: ArrayModule
) -> tuple[list[Array | None], ...]:
    found = []
    for i, param in enumerate(Param):
        one = AdamState(
            states.LearningRate[i if len(states.LearningRate) > 1 else 0],
            states.Moment1[i],
            states.Moment2[i],
            states.Beta1Pow[i],
            states.Beta2Pow[i],
            states.MasterParam[i] if states.MasterParam else None,
        )
        found.append(update(param, Grad[i], one, rule, xp))
    return tuple(list(values) for values in zip(*found, strict=True))
