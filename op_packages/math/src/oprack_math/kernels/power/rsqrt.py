"""Kernels of rsqrt, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, FLOATING, REAL_FLOATS


@kernel("rsqrt", place=BOTH, dtypes=FLOATING)
def rsqrt(X: Array, *, xp: ArrayModule) -> Array:
    """1 / sqrt(X)."""
    return X.dtype.type(1) / xp.sqrt(X)


@kernel("rsqrt_grad", place=BOTH, dtypes=REAL_FLOATS)
def rsqrt_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD Out^3 / 2."""
    return Out_grad * Out.dtype.type(-0.5) * Out * Out * Out


@kernel("rsqrt_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def rsqrt_grad_grad(
    Out: Array, grad_x: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By Out and by Out@GRAD."""
    dout = Out.dtype.type(3) * grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    ddout = Out.dtype.type(-0.5) * grad_x_grad * Out * Out * Out if ctx.wants("grad_out@GRAD") else None
    return dout, ddout
