"""Kernels of adam."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS
from oprack_optimizer.kernels.adam._family import update
from oprack_optimizer.ops._state import AdamRule, AdamState


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
