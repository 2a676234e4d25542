"""Kernels of sqrt, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, FLOATING, REAL_FLOATS


@kernel("sqrt", place=BOTH, dtypes=FLOATING)
def sqrt(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Square root."""
    return xp.sqrt(X, out=out)


@kernel("sqrt", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """Square root of every value."""
    return with_values(X, xp.sqrt(X.value))


@kernel("sqrt_grad", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (2 Out)."""
    return Out_grad * Out.dtype.type(0.5) / Out


@kernel("sqrt_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_grad_grad(
    Out: Array, grad_x: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By Out and by Out@GRAD."""
    dout = -grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    return dout, grad_x_grad * Out.dtype.type(0.5) / Out if ctx.wants("grad_out@GRAD") else None
