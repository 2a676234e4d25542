"""Kernels of elementwise_heaviside and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._sets import BOTH, REAL


@kernel("elementwise_heaviside", place=BOTH, dtypes=REAL)
def elementwise_heaviside(X: Any, Y: Any, *, xp: Any) -> Any:
    """The step function, Y at the step."""
    return xp.where(X == 0, Y, (X > 0).astype(X.dtype))


@kernel("elementwise_heaviside_grad", place=BOTH, dtypes=REAL)
def elementwise_heaviside_grad(Out_grad: Any, X: Any, Y: Any, *, ctx: Any, xp: Any) -> Any:
    """Zeros for X, and for Y what went through at the step."""
    x, y = align(X, Y, -1)
    dy = sum_to(xp.where(x == 0, Out_grad, xp.zeros((), Out_grad.dtype)), y, Y) if ctx.wants("Y@GRAD") else None
    return xp.zeros_like(X) if ctx.wants("X@GRAD") else None, dy
