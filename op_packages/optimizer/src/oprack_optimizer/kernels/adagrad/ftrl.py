"""Kernels of ftrl."""

from __future__ import annotations

from oprack.device import row_totals
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS

from oprack_optimizer.kernels._update import BOTH, scalar


def _step(
    p: Array, squared: Array, linear: Array, g: Array, lr: Array, l1: float, l2: float, lr_power: float, xp: ArrayModule
) -> tuple[Array, ...]:
    """(parameter, squared, linear) after one step."""
    kind = p.dtype.type

    def inverse_rate(a: Array) -> Array:
        return (xp.sqrt(a) if lr_power == -0.5 else a ** kind(-lr_power)) / lr

    total = squared + g * g
    z = linear + g - (inverse_rate(total) - inverse_rate(squared)) * p
    inside = (kind(l1) * xp.sign(z) - z) / (inverse_rate(total) + kind(2 * l2))
    return xp.where(abs(z) > l1, inside, kind(0)), total, z


@kernel("ftrl", place=BOTH, dtypes=FLOATS)
def ftrl(
    Param: Array,
    SquaredAccumulator: Array,
    LinearAccumulator: Array,
    Grad: Array,
    LearningRate: Array,
    *,
    l1: float,
    l2: float,
    lr_power: float,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    lr = scalar(LearningRate, Param.dtype)
    return _step(Param, SquaredAccumulator, LinearAccumulator, Grad, lr, l1, l2, lr_power, xp)


@kernel("ftrl", place=BOTH, dtypes=FLOATS, deterministic={"cpu"})
def ftrl_rows(
    Param: Array,
    SquaredAccumulator: Array,
    LinearAccumulator: Array,
    Grad: SelectedRows,
    LearningRate: Array,
    *,
    l1: float,
    l2: float,
    lr_power: float,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """Rows without a gradient keep their values."""
    totals = row_totals(Grad, xp)
    rows, old = totals.rows, (Param, SquaredAccumulator, LinearAccumulator)
    lr = scalar(LearningRate, Param.dtype)
    found = _step(*(a[rows] for a in old), totals.value, lr, l1, l2, lr_power, xp)
    new = tuple(a.copy() for a in old)
    for target, value in zip(new, found, strict=True):
        target[rows] = value
    return new
