"""Kernels of mv and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.matmul._family import matmul


@kernel("mv", place=BOTH, dtypes=REAL_FLOATS)
def mv(X: Any, Vec: Any, *, xp: Any) -> Any:
    """Matrix times vector."""
    return matmul(X, Vec, xp)


@kernel("mv_grad", place=BOTH, dtypes=REAL_FLOATS)
def mv_grad(X: Any, Vec: Any, Out_grad: Any, *, ctx: Any, xp: Any) -> Any:
    """The outer product, and the transposed matrix times Out@GRAD."""
    dx = Out_grad[:, None] * Vec if ctx.wants("X@GRAD") else None
    return dx, matmul(X.T, Out_grad, xp) if ctx.wants("Vec@GRAD") else None
