"""Kernels of adamw: decoupled weight decay, then adam."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, rounded, scalar, working
from oprack_optimizer.kernels.adam._family import powers, rates_of, skipped, step
from oprack_optimizer.ops._state import AdamRule, AdamState


def _decayed(p: Array, lr: Array, lr_ratio: float, coeff: float, with_decay: bool) -> tuple[Array, Array]:
    """Parameter and learning rate that adam's step starts from."""
    if not with_decay:
        return p, lr
    kind = p.dtype.type
    lr = lr * kind(lr_ratio)
    return p * (kind(1) - lr * kind(coeff)), lr


def _update(
    param: Array,
    grad: Array | SelectedRows,
    state: AdamState,
    rule: AdamRule,
    decay: tuple[float, float, bool],
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    same = skipped(param, state)
    if same is not None:
        return same
    rates = rates_of(state, rule)
    p = working(param, state.MasterParam, rule.multi_precision)
    p, lr = _decayed(p, scalar(state.LearningRate, p.dtype), *decay)
    g = grad if not isinstance(grad, SelectedRows) else dense(grad, p.dtype, xp)
    b1pow, b2pow = scalar(state.Beta1Pow, p.dtype), scalar(state.Beta2Pow, p.dtype)
    new, new1, new2 = step(p, g, state.Moment1, state.Moment2, lr, b1pow, b2pow, *rates, xp)
    out, new_master = rounded(new, param, state.MasterParam, rule.multi_precision)
    return out, new1, new2, *powers(state, rates, rule), new_master


@kernel("adamw", place=BOTH, dtypes=REALS)
def adamw(
    Param: Array,
    Grad: Array,
    state: AdamState,
    *,
    rule: AdamRule,
    lr_ratio: float,
    coeff: float,
    with_decay: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return _update(Param, Grad, state, rule, (lr_ratio, coeff, with_decay), xp)


@kernel("adamw", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adamw_rows(
    Param: Array,
    Grad: SelectedRows,
    state: AdamState,
    *,
    rule: AdamRule,
    lr_ratio: float,
    coeff: float,
    with_decay: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    return _update(Param, Grad, state, rule, (lr_ratio, coeff, with_decay), xp)
