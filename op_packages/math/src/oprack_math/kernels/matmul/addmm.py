"""Kernels of addmm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("addmm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def addmm(Input: Array, X: Array, Y: Array, *, Beta: float, Alpha: float, xp: ArrayModule) -> Array:
    """Beta Input + Alpha X Y."""
    kind = X.dtype.type
    return kind(Beta) * Input + kind(Alpha) * xp.matmul(X, Y)


@kernel("addmm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def addmm_grad(
    Input: Array, X: Array, Y: Array, Out_grad: Array, *, Beta: float, Alpha: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None, Array | None]:
    """Out@GRAD for each term, through its factors."""
    kind, dx, dy, given = X.dtype.type, None, None, None
    if ctx.wants("Input@GRAD"):
        given = kind(Beta) * sum_to(Out_grad, align(Input, Out_grad, -1)[0], Input)
    if ctx.wants("X@GRAD"):
        dx = kind(Alpha) * xp.matmul(Out_grad, Y.T)
    if ctx.wants("Y@GRAD"):
        dy = kind(Alpha) * xp.matmul(X.T, Out_grad)
    return given, dx, dy
