"""Kernel of npu_identity."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel


@kernel("npu_identity", place=("cpu", "cuda"))
def npu_identity(x: Any) -> Any:
    """A copy."""
    return x.copy()
