"""Kernels of ops on the bits of integers."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import BOOL, INTEGERS

from oprack_math.kernels._sets import BOTH


# shared ---------------------------------------------------------------------------------------------------------------
# What shifts share.
def bits_of(x: Array) -> Any:
    """The number of bits of a dtype, as a number of it."""
    return x.dtype.type(8 * x.dtype.itemsize)


# bitwise_and ----------------------------------------------------------------------------------------------------------
@kernel("bitwise_and", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_and(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_and(X, Y)


# bitwise_left_shift ---------------------------------------------------------------------------------------------------
@kernel("bitwise_left_shift", place=BOTH, dtypes=INTEGERS)
def bitwise_left_shift(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit; by as many bits as there are, or more, 0."""
    return xp.where(Y < bits_of(X), xp.left_shift(X, Y % bits_of(X)), X.dtype.type(0))


# bitwise_not ----------------------------------------------------------------------------------------------------------
@kernel("bitwise_not", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_not(X: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_not(X)


# bitwise_or -----------------------------------------------------------------------------------------------------------
@kernel("bitwise_or", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_or(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_or(X, Y)


# bitwise_right_shift --------------------------------------------------------------------------------------------------
@kernel("bitwise_right_shift", place=BOTH, dtypes=INTEGERS)
def bitwise_right_shift(X: Array, Y: Array, *, is_arithmetic: bool, xp: ArrayModule) -> Array:
    """Bit by bit; by as many bits as there are, or more, what stays: 0, or -1 for the sign."""
    x = X if is_arithmetic else X.view(f"u{X.dtype.itemsize}")
    y = xp.minimum(Y, bits_of(X) - X.dtype.type(1)).astype(x.dtype, copy=False)
    moved = xp.right_shift(x, y)
    if x.dtype.kind == "u":
        moved = xp.where(Y < bits_of(X), moved, x.dtype.type(0))
    return moved.view(X.dtype)


# bitwise_xor ----------------------------------------------------------------------------------------------------------
@kernel("bitwise_xor", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_xor(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_xor(X, Y)
