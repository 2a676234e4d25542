"""Kernels of adagrad."""

from __future__ import annotations

from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, working


@kernel("adagrad", place=BOTH, dtypes=REALS)
def adagrad(
    Param: Array,
    Grad: Array,
    Moment: Array,
    LearningRate: Array,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    p = working(Param, MasterParam, multi_precision)
    g = Grad.astype(p.dtype, copy=False)
    moment = Moment + g * g
    new = p - scalar(LearningRate, p.dtype) * g / (xp.sqrt(moment) + p.dtype.type(epsilon))
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, moment, master


@kernel("adagrad", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def adagrad_rows(
    Param: Array,
    Grad: SelectedRows,
    Moment: Array,
    LearningRate: Array,
    MasterParam: Array | None = None,
    *,
    epsilon: float,
    multi_precision: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    """Rows without a gradient keep their values, as they would with a gradient of 0."""
    p = working(Param, MasterParam, multi_precision)
    totals = row_totals(Grad, xp)
    rows, g = totals.rows, totals.value.astype(p.dtype, copy=False)
    new, moment = p.copy(), Moment.copy()
    moment[rows] += g * g
    new[rows] -= scalar(LearningRate, p.dtype) * g / (xp.sqrt(moment[rows]) + p.dtype.type(epsilon))
    out, master = rounded(new, Param, MasterParam, multi_precision)
    return out, moment, master
