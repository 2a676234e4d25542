"""Kernels of momentum."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, dense, working
from oprack_optimizer.kernels.momentum._family import update
from oprack_optimizer.ops._state import MomentumRule, MomentumState


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
