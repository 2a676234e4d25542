"""Kernel of npu_identity."""

from __future__ import annotations

from oprack.kernel import Array, kernel


@kernel("npu_identity", place=("cpu", "cuda"))
def npu_identity(x: Array) -> Array:
    """A copy."""
    return x.copy()
