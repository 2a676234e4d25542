"""Kernels of arg_max and arg_min."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH

NUMBERS = FLOATS | HALF_FLOATS | INTEGERS


def _position(find, x, worst, axis, keepdims, flatten, dtype, xp):
    if x.dtype.kind not in "iu":
        x = xp.where(xp.isnan(x), x.dtype.type(worst), x)
    kind = xp.int32 if dtype == 2 else xp.int64
    if flatten or not x.ndim:
        found = xp.asarray(find(x.reshape(-1), axis=0)).astype(kind)
        return found.reshape((1,) * x.ndim) if keepdims and flatten else found
    found = find(x, axis=axis)
    return (xp.expand_dims(found, axis) if keepdims else found).astype(kind, copy=False)


@kernel("arg_max", place=BOTH, dtypes=NUMBERS)
def arg_max(X, *, axis, keepdims, flatten, dtype, xp):
    """Where the greatest element is."""
    return _position(xp.argmax, X, -float("inf"), axis, keepdims, flatten, dtype, xp)


@kernel("arg_min", place=BOTH, dtypes=NUMBERS)
def arg_min(X, *, axis, keepdims, flatten, dtype, xp):
    """Where the smallest element is."""
    return _position(xp.argmin, X, float("inf"), axis, keepdims, flatten, dtype, xp)
