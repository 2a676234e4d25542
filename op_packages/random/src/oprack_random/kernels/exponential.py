"""Kernel of exponential."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel
from oprack.types import FLOATS


@kernel("exponential", place=("cpu", "cuda"), dtypes=FLOATS)
def exponential(X: Any, *, lambda_: float, ctx: Any, xp: Any) -> Any:
    """Waiting times of that rate."""
    return xp.asarray((ctx.generator(0).standard_exponential(X.shape) / lambda_).astype(X.dtype))
