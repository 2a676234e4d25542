"""What exp and log share: integers become float32."""

from __future__ import annotations


def as_float(x, xp):
    """Integers as float32."""
    return x.astype(xp.float32) if x.dtype.kind in "iu" else x


def same_dtype(out, x):
    """`out`, unless the result has another dtype."""
    return out if out is not None and out.dtype == x.dtype else None
