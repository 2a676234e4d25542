"""The step of adam, adamw and merged_adam; lamb shares its powers and when it is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule
from oprack.kernel.commit import Commit
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import by_blocks, dense, is_large, number, rounded, scalar, working

if TYPE_CHECKING:
    from oprack_optimizer.ops._state import AdamRule, AdamState


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
) -> tuple[Array, ...]:
    """(parameter, moment 1, moment 2) after one step. lr, b1pow, b2pow: 0-d arrays. out, others: as in by_blocks."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False)
    correction = xp.sqrt(kind(1) - b2pow)
    numbers = (kind(beta1), kind(1 - beta1), kind(beta2), kind(1 - beta2))
    numbers = (*numbers, kind(epsilon) * correction, lr * correction / (kind(1) - b1pow))
    if is_large(p):
        return by_blocks(lambda *blocks: _update_block(*blocks, *numbers), (p, g, m1, m2), 3, out, others)
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
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """As `step`, in the rows that the gradient holds. out: the memory of p when it may be overwritten, else None."""
    totals = row_totals(grad, xp)
    rows = totals.rows
    new = p.copy() if out is None else out, m1.copy(), m2.copy()
    found = step(p[rows], totals.value, m1[rows], m2[rows], lr, b1, b2, *rates, xp)
    for target, value in zip(new[1:], found[1:], strict=True):
        target[rows] = value
    commit = Commit((*new, *others))
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
    others = (*new_powers, None)  # where the parameter itself is overwritten
    if lazy:
        new, new1, new2 = _lazy(p, grad, m1, m2, *scalars, rates, out, others, xp)
    elif isinstance(grad, SelectedRows):
        new, new1, new2 = step(p, dense(grad, p.dtype, xp), m1, m2, *scalars, *rates, xp)
    else:
        new, new1, new2 = step(p, grad, m1, m2, *scalars, *rates, xp, out, others)
    out, new_master = rounded(new, param, master, rule.multi_precision)
    return out, new1, new2, *new_powers, new_master
