"""What kernels of activations share."""

from __future__ import annotations

from oprack.types import COMPLEX, FLOATS, HALF_FLOATS

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS
NUMBERS = REALS | COMPLEX


def clip(x, low, high, out, xp):
    """x with low and high as bounds."""
    kind = x.dtype.type
    y = xp.empty_like(x) if out is None else out
    xp.maximum(x, kind(low), out=y)
    return xp.minimum(y, kind(high), out=y)


def inside(x, grad, low, high, out, xp):
    """grad where low < x < high, else 0."""
    return xp.multiply(grad, (x > low) & (x < high), out=out, dtype=x.dtype)


def negative_part(x, xp):
    """min(x, 0): keeps exp from overflowing where its value is not used."""
    return xp.minimum(x, x.dtype.type(0))
