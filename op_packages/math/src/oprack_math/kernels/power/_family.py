"""What exp and log share: integers become float32."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def as_float(x: Array, xp: ArrayModule) -> Array:
    """Integers as float32."""
    return x.astype(xp.float32) if x.dtype.kind in "iu" else x


def same_dtype(out: Array | None, x: Array) -> Array | None:
    """`out`, unless the result has another dtype."""
    return out if out is not None and out.dtype == x.dtype else None
