"""Kernels of plain gradient descent, also with a proximal step or with noise."""

from __future__ import annotations

import numpy as np
from oprack.device import row_totals
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, REALS, rounded, scalar, shrink, working


# dpsgd ----------------------------------------------------------------------------------------------------------------
@kernel("dpsgd", place=BOTH, dtypes=FLOATS)
def dpsgd(
    Param: Array,
    Grad: Array,
    LearningRate: Array,
    *,
    clip: float,
    batch_size: float,
    sigma: float,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    kind = Param.dtype.type
    norm = xp.sqrt((Grad * Grad).sum())
    clipped = Grad / xp.maximum(norm / kind(clip), kind(1))
    noise = xp.asarray(ctx.generator(seed).standard_normal(Param.shape)).astype(Param.dtype) * kind(sigma)
    return Param - scalar(LearningRate, Param.dtype) * (clipped + noise / kind(batch_size))


# proximal_gd ----------------------------------------------------------------------------------------------------------
@kernel("proximal_gd", place=BOTH, dtypes=FLOATS)
def proximal_gd(Param: Array, Grad: Array, LearningRate: Array, *, l1: float, l2: float, xp: ArrayModule) -> Array:
    lr = scalar(LearningRate, Param.dtype)
    return shrink(Param - lr * Grad, lr, l1, l2, xp)


# sgd ------------------------------------------------------------------------------------------------------------------
@kernel("sgd", place=BOTH, dtypes=REALS)
def sgd(
    Param: Array,
    LearningRate: Array,
    Grad: Array,
    MasterParam: Array | None = None,
    *,
    multi_precision: bool,
    out: Array | None = None,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    p = working(Param, MasterParam, multi_precision)
    step = Grad.astype(p.dtype, copy=False) * scalar(LearningRate, p.dtype)
    return rounded(xp.subtract(p, step, out=out if p is Param else None), Param, MasterParam, multi_precision)


@kernel("sgd", place=BOTH, dtypes=REALS, deterministic={"cpu"})
def sgd_rows(
    Param: Array,
    LearningRate: Array,
    Grad: SelectedRows,
    MasterParam: Array | None = None,
    *,
    multi_precision: bool,
    out: Array | None = None,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    p = working(Param, MasterParam, multi_precision)
    new = p.copy() if out is None or p is not Param else out
    totals = row_totals(Grad, xp)
    rows = new.take(totals.rows, axis=0)  # several times as fast as new[rows]
    rows -= totals.value.astype(p.dtype, copy=False) * scalar(LearningRate, p.dtype)
    new[totals.rows] = rows
    return rounded(new, Param, MasterParam, multi_precision)


@kernel("sgd", dtypes=REALS)
def sgd_rows_of_rows(Param: SelectedRows, LearningRate: Array, Grad: SelectedRows) -> SelectedRows:
    """A table that holds some rows only; all rows of the gradient must be among them."""
    merged = Grad.merged()
    order = np.argsort(Param.rows, kind="stable")
    at = np.searchsorted(Param.rows[order], merged.rows)
    known = at < len(order)
    known[known] = Param.rows[order[at[known]]] == merged.rows[known]
    if not known.all():
        raise InvalidArgumentError(
            f"op sgd: Grad holds row {int(merged.rows[~known][0])}, which Param does not; add it to the table first"
        )
    value = Param.value.copy()
    value[order[at]] -= merged.value * scalar(LearningRate, value.dtype)
    return SelectedRows(Param.rows.copy(), value, Param.height, check=False)
