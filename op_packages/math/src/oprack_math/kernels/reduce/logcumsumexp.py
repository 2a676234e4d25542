"""Kernels of logcumsumexp and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import REAL_FLOATS


def _running(x: Array, axis: int, exclusive: bool, reverse: bool, nothing: float) -> Array:
    """Logarithms of running sums of exponentials; `nothing` is that of the empty sum."""
    ordered = np.flip(x, axis) if reverse else x
    total = np.logaddexp.accumulate(ordered, axis=axis)
    if exclusive:
        total = np.roll(total, 1, axis)
        total[(slice(None),) * (axis % x.ndim) + (slice(1),)] = nothing
    return np.ascontiguousarray(np.flip(total, axis)) if reverse else total


@kernel("logcumsumexp", dtypes=REAL_FLOATS)
@rounded_once
def logcumsumexp(X: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool) -> Array:
    """Along a dim, or over all elements as one dim."""
    x = X.reshape(-1) if flatten or not X.ndim else X
    lowest = np.finfo(x.dtype).min
    found = _running(x, 0 if flatten or not X.ndim else axis, exclusive, reverse, lowest)
    return found if flatten else found.reshape(X.shape)


@kernel("logcumsumexp_grad", dtypes=REAL_FLOATS)
@rounded_once
def logcumsumexp_grad(
    X: Array, Out: Array, Out_grad: Array, *, axis: int, flatten: bool, exclusive: bool, reverse: bool
) -> Array:
    """The same sums from the other end, of positive and of negative gradients apart, so that none overflows."""
    x = X.reshape(Out.shape or -1)
    out, g = Out.reshape(x.shape), Out_grad.reshape(x.shape)
    axis = 0 if flatten or not X.ndim else axis
    logs = (np.log(np.maximum(part, 0)) - out for part in (g, -g))
    positive, negative = (np.exp(x + _running(log, axis, exclusive, not reverse, -np.inf)) for log in logs)
    return (positive - negative).reshape(X.shape)
