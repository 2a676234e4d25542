"""Kernels of momentum, merged_momentum and sparse_momentum."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, by_blocks, dense, is_large, rounded, scalar, working
from oprack_optimizer.ops._state import MomentumRule, MomentumState


def step(p, grad, velocity, lr, rule, out=None):
    """(parameter, velocity) after one step. out: memory that the parameter may have."""
    kind, mu, nesterov = p.dtype.type, rule.mu, rule.use_nesterov
    g = grad.astype(p.dtype, copy=False)
    if rule.rescale_grad != 1.0:
        g = g * kind(rule.rescale_grad)
    if rule.regularization_method == "l2_decay":
        g = g + kind(rule.regularization_coeff) * p
    if is_large(p):
        return by_blocks(lambda *blocks: _update_block(*blocks, kind(mu), nesterov, lr), (p, g, velocity), 2, out)
    v = velocity * kind(mu) + g
    return p - (g + v * kind(mu) if nesterov else v) * lr, v


def _update_block(given, made, work, mu, nesterov, lr):
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


def _update(param, grad, state, rule, out=None):
    p = working(param, state.MasterParam, rule.multi_precision)
    lr = scalar(state.LearningRate, p.dtype)
    new, v = step(p, grad, state.Velocity, lr, rule, out if p is param else None)
    new, master = rounded(new, param, state.MasterParam, rule.multi_precision)
    return new, v, master


@kernel("momentum", place=BOTH, dtypes=REALS)
def momentum(Param, Grad, state: MomentumState, *, rule: MomentumRule, out=None):
    return _update(Param, Grad, state, rule, out)


@kernel("momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def momentum_rows(Param, Grad: SelectedRows, state: MomentumState, *, rule: MomentumRule, xp):
    p = working(Param, state.MasterParam, rule.multi_precision)
    return _update(Param, dense(Grad, p.dtype, xp), state, rule)


@kernel("merged_momentum", place=BOTH, dtypes=REALS)
def merged_momentum(Param, Grad, states: MomentumState, *, rule: MomentumRule):
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
        found.append(_update(param, Grad[i], one, own))
    return tuple(list(values) for values in zip(*found, strict=True))


@kernel("sparse_momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def sparse_momentum(Param, Grad, Index, state: MomentumState, Axis=None, *, rule: MomentumRule, axis, xp):
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
    return _update(Param, full, state, rule)
