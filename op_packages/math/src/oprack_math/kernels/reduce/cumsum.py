"""Kernels of cumsum."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import accumulator
from oprack_math.kernels._sets import BOTH, NUMBERS


def _running_sum(x: Array, axis: int, exclusive: bool, reverse: bool, xp: ArrayModule) -> Array:
    if not x.ndim:
        return x.copy()
    ordered = xp.flip(x, axis) if reverse else x
    total = xp.cumsum(ordered, axis=axis, dtype=accumulator(x.dtype)).astype(x.dtype, copy=False)
    if exclusive:
        shifted = xp.zeros_like(total)
        axis %= x.ndim
        lead = (slice(None),) * axis
        shifted[(*lead, slice(1, None))] = total[(*lead, slice(None, -1))]
        total = shifted
    return xp.ascontiguousarray(xp.flip(total, axis)) if reverse else total


@kernel("cumsum", place=BOTH, dtypes=NUMBERS)
def cumsum(X: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool, xp: ArrayModule) -> Array:
    """Running sums."""
    return _running_sum(*((X.reshape(-1), 0) if flatten else (X, axis)), exclusive, reverse, xp)


@kernel("cumsum_grad", place=BOTH, dtypes=NUMBERS)
def cumsum_grad(
    X: Array, Out_grad: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool, xp: ArrayModule
) -> Array:
    """Running sums of Out@GRAD from the other end."""
    return _running_sum(Out_grad, 0 if flatten else axis, exclusive, not reverse, xp).reshape(X.shape)
