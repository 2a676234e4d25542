"""Kernels of gaussian_inplace and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel
from oprack.types import FLOATS


@kernel("gaussian_inplace", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_inplace(x: Any, *, mean: float, std: float, seed: int, ctx: Any, xp: Any) -> Any:
    """Normally distributed numbers."""
    return xp.asarray(ctx.generator(seed).normal(mean, std, x.shape).astype(x.dtype))


@kernel("gaussian_inplace_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gaussian_inplace_grad(out_grad: Any, *, xp: Any) -> Any:
    """Zeros."""
    return xp.zeros_like(out_grad)
