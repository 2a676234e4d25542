"""Kernels of gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.kernel.commit import Commit
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, by_blocks, dense, is_large, rounded, scalar, working
from oprack_optimizer.ops._state import MomentumRule, MomentumState


# shared ---------------------------------------------------------------------------------------------------------------
# The step of momentum, merged_momentum and sparse_momentum.
def step(
    p: Array,
    grad: Array,
    velocity: Array,
    lr: Array,
    rule: MomentumRule,
    out: Array | None = None,
    commit: Commit | None = None,
) -> tuple[Array, ...]:
    """(parameter, velocity) after one step. out: memory that the parameter may have; commit: as in by_blocks."""
    kind, mu, nesterov = p.dtype.type, rule.mu, rule.use_nesterov
    g = grad.astype(p.dtype, copy=False)
    if rule.rescale_grad != 1.0:
        g = g * kind(rule.rescale_grad)
    if rule.regularization_method == "l2_decay":
        g = g + kind(rule.regularization_coeff) * p
    if is_large(p):

        def block(given: Sequence[Array], made: Sequence[Array], work: Array) -> None:
            _update_block(given, made, work, kind(mu), nesterov, lr)

        return by_blocks(block, (p, g, velocity), 2, out, (None,), commit)
    v = velocity * kind(mu) + g
    return p - (g + v * kind(mu) if nesterov else v) * lr, v


def _update_block(
    given: Sequence[Array], made: Sequence[Array], work: Array, mu: float, nesterov: bool, lr: Array
) -> None:
    """The same operations in the same order."""
    (p, g, velocity), (new, v) = given, made
    np.multiply(velocity, mu, out=v)
    v += g
    if nesterov:
        np.multiply(v, mu, out=work)
        np.add(g, work, out=work)
        work *= lr
    else:
        np.multiply(v, lr, out=work)
    np.subtract(p, work, out=new)


def update(
    param: Array, grad: Array, state: MomentumState, rule: MomentumRule, out: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """The outputs of the op. out: memory that the parameter may have."""
    p = working(param, state.MasterParam, rule.multi_precision)
    lr = scalar(state.LearningRate, p.dtype)
    commit = Commit()
    new, v = step(p, grad, state.Velocity, lr, rule, out if p is param else None, commit)
    new, master = rounded(new, param, state.MasterParam, rule.multi_precision)
    return new, v, master


# lars_momentum --------------------------------------------------------------------------------------------------------
def _step(
    p: Array,
    grad: Array,
    velocity: Array,
    lr: Array,
    mu: float,
    coefficient: float,
    decay: float,
    epsilon: float,
    rescale: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """(parameter, velocity) after one step."""
    kind = p.dtype.type
    g = grad.astype(p.dtype, copy=False) * kind(rescale)
    p_norm, g_norm = xp.sqrt((p * p).sum()), xp.sqrt((g * g).sum())
    if decay > 0:
        adapted = lr * kind(coefficient) * p_norm / (g_norm + kind(decay) * p_norm + kind(epsilon))
        lr = xp.where((p_norm > 0) & (g_norm > 0), adapted, lr)
    v = velocity * kind(mu) + lr * (g + kind(decay) * p)
    return p - v, v


@kernel("lars_momentum", place=BOTH, dtypes=REALS)
def lars_momentum(
    Param: list[Array],
    Grad: list[Array],
    Velocity: list[Array],
    LearningRate: list[Array],
    MasterParam: list[Array],
    *,
    mu: float,
    lars_coeff: float,
    lars_weight_decay: list[float],
    epsilon: float,
    multi_precision: bool,
    rescale_grad: float,
    xp: ArrayModule,
) -> tuple[list[Array], list[Array], list[Array | None]]:
    params, velocities, masters = [], [], []
    for i, param in enumerate(Param):
        master = MasterParam[i] if MasterParam else None
        p = working(param, master, multi_precision)
        lr = scalar(LearningRate[i if len(LearningRate) > 1 else 0], p.dtype)
        decay = lars_weight_decay[i if len(lars_weight_decay) > 1 else 0]
        new, v = _step(p, Grad[i], Velocity[i], lr, mu, lars_coeff, decay, epsilon, rescale_grad, xp)
        out, master = rounded(new, param, master, multi_precision)
        params.append(out)
        velocities.append(v)
        masters.append(master)
    return params, velocities, masters


# merged_momentum ------------------------------------------------------------------------------------------------------
@kernel("merged_momentum", place=BOTH, dtypes=REALS)
def merged_momentum(
    Param: list[Array], Grad: list[Array], states: MomentumState, *, rule: MomentumRule
) -> tuple[list[Array | None], ...]:
    found = []
    for i, param in enumerate(Param):
        one = MomentumState(
            states.Velocity[i],
            states.LearningRate[i if len(states.LearningRate) > 1 else 0],
            states.MasterParam[i] if states.MasterParam else None,
        )
        method = rule.regularization_method[i] if rule.regularization_method else ""
        coefficient = rule.regularization_coeff[i] if rule.regularization_coeff else 0.0
        own = rule._replace(regularization_method=method, regularization_coeff=coefficient)
        found.append(update(param, Grad[i], one, own))
    return tuple(list(values) for values in zip(*found, strict=True))


# momentum -------------------------------------------------------------------------------------------------------------
@kernel("momentum", place=BOTH, dtypes=REALS)
def momentum(
    Param: Array, Grad: Array, state: MomentumState, *, rule: MomentumRule, out: Array | None = None
) -> tuple[Array, Array, Array | None]:
    return update(Param, Grad, state, rule, out)


@kernel("momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def momentum_rows(
    Param: Array, Grad: SelectedRows, state: MomentumState, *, rule: MomentumRule, xp: ArrayModule
) -> tuple[Array, Array, Array | None]:
    p = working(Param, state.MasterParam, rule.multi_precision)
    return update(Param, dense(Grad, p.dtype, xp), state, rule)


# sparse_momentum ------------------------------------------------------------------------------------------------------
@kernel("sparse_momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def sparse_momentum(
    Param: Array,
    Grad: Array,
    Index: Array,
    state: MomentumState,
    Axis: Array | None = None,
    *,
    rule: MomentumRule,
    axis: int,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    dim = int(Axis.reshape(-1)[0]) if Axis is not None else axis
    rows = Index.reshape(-1).astype(xp.int64)
    # looking at the indices would wait for a device
    if xp is np and len(rows) and not (0 <= rows.min() and rows.max() < Param.shape[dim]):
        raise InvalidArgumentError(
            f"op sparse_momentum: Index lies in [{rows.min()}, {rows.max()}], but Param has shape {list(Param.shape)} "
            f"and axis is {dim}; expected values in [0, {Param.shape[dim]})"
        )
    full = xp.zeros(Param.shape, working(Param, state.MasterParam, rule.multi_precision).dtype)
    xp.add.at(xp.moveaxis(full, dim, 0), rows, xp.moveaxis(Grad, dim, 0))
    return update(Param, full, state, rule)
