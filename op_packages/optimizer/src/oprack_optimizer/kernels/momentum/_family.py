"""The step of momentum, merged_momentum and sparse_momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from oprack.kernel import Array

from oprack_optimizer.kernels._update import by_blocks, is_large, rounded, scalar, working

if TYPE_CHECKING:
    from oprack_optimizer.ops._state import MomentumRule, MomentumState


def step(
    p: Array, grad: Array, velocity: Array, lr: Array, rule: MomentumRule, out: Array | None = None
) -> tuple[Array, Array]:
    """(parameter, velocity) after one step. out: memory that the parameter may have."""
    kind, mu, nesterov = p.dtype.type, rule.mu, rule.use_nesterov
    g = grad.astype(p.dtype, copy=False)
    if rule.rescale_grad != 1.0:
        g = g * kind(rule.rescale_grad)
    if rule.regularization_method == "l2_decay":
        g = g + kind(rule.regularization_coeff) * p
    if is_large(p):
        given = (p, g, velocity)
        return by_blocks(lambda *blocks: _update_block(*blocks, kind(mu), nesterov, lr), given, 2, out, (None,))
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
    new, v = step(p, grad, state.Velocity, lr, rule, out if p is param else None)
    new, master = rounded(new, param, state.MasterParam, rule.multi_precision)
    return new, v, master
