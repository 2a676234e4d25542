"""Kernels of fill_any and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("fill_any", place=("cpu", "cuda"))
def fill_any(X: Array, *, value: float, xp: ArrayModule) -> Array:
    """The value everywhere."""
    return xp.full(X.shape, value, X.dtype)


@kernel("fill_any_grad", place=("cpu", "cuda"))
def fill_any_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
