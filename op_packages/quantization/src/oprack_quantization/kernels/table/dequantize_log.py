"""Kernel of dequantize_log."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("dequantize_log", place=("cpu", "cuda"), dtypes={"int8"})
def dequantize_log(X: Array, Dict: Array, *, xp: ArrayModule) -> Array:
    """Numbers of the dictionary, with the sign of X."""
    return xp.concatenate([Dict, -Dict])[X.astype(xp.int64) % 256]
