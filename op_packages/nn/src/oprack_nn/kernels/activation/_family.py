"""What kernels of activations share."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS
NUMBERS = REALS | COMPLEX


def clip(x: Array, low: float, high: float, out: Array | None, xp: ArrayModule) -> Array:
    """x with low and high as bounds."""
    kind = x.dtype.type
    y = xp.empty_like(x) if out is None else out
    xp.maximum(x, kind(low), out=y)
    return xp.minimum(y, kind(high), out=y)


def inside(x: Array, grad: Array, low: float, high: float, out: Array | None, xp: ArrayModule) -> Array:
    """grad where low < x < high, else 0."""
    return xp.multiply(grad, (x > low) & (x < high), out=out, dtype=x.dtype)


def negative_part(x: Array, xp: ArrayModule) -> Array:
    """min(x, 0): keeps exp from overflowing where its value is not used."""
    return xp.minimum(x, x.dtype.type(0))
