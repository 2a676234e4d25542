"""Kernels of lamb."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, rounded, scalar, working
from oprack_optimizer.kernels.adam._family import powers, skipped
from oprack_optimizer.ops._state import AdamRule, AdamState


def _update(
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
    return _update(Param, Grad, state, rule, weight_decay, always_adapt, xp)


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
    return _update(Param, Grad, state, rule, weight_decay, always_adapt, xp)
