"""Kernel of bitwise_right_shift."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import INTEGERS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.bitwise._family import bits_of


@kernel("bitwise_right_shift", place=BOTH, dtypes=INTEGERS)
def bitwise_right_shift(X: Array, Y: Array, *, is_arithmetic: bool, xp: ArrayModule) -> Array:
    """Bit by bit; by as many bits as there are, or more, what stays: 0, or -1 for the sign."""
    x = X if is_arithmetic else X.view(f"u{X.dtype.itemsize}")
    y = xp.minimum(Y, bits_of(X) - X.dtype.type(1)).astype(x.dtype, copy=False)
    moved = xp.right_shift(x, y)
    if x.dtype.kind == "u":
        moved = xp.where(Y < bits_of(X), moved, x.dtype.type(0))
    return moved.view(X.dtype)
