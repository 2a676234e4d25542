"""Kernels of momentum."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, working
from oprack_optimizer.kernels.momentum._family import update
from oprack_optimizer.ops._state import MomentumRule, MomentumState


@kernel("momentum", place=BOTH, dtypes=REALS)
def momentum(Param, Grad, state: MomentumState, *, rule: MomentumRule, out=None):
    return update(Param, Grad, state, rule, out)


@kernel("momentum", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def momentum_rows(Param, Grad: SelectedRows, state: MomentumState, *, rule: MomentumRule, xp):
    p = working(Param, state.MasterParam, rule.multi_precision)
    return update(Param, dense(Grad, p.dtype, xp), state, rule)
