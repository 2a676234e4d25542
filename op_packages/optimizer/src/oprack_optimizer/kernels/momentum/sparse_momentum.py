"""Kernel of sparse_momentum."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_optimizer.kernels._update import BOTH, REALS, working
from oprack_optimizer.kernels.momentum._family import update
from oprack_optimizer.ops._state import MomentumRule, MomentumState


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
