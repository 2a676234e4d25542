"""Kernels of fused_softmax_mask_upper_triangle and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fused_softmax_mask_upper_triangle", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask_upper_triangle(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """softmax of what is not later."""
    size = X.shape[-1]
    earlier = xp.arange(size) <= xp.arange(size)[:, None]
    return Steps(ctx)("softmax", X=xp.where(earlier, X, X.dtype.type(-xp.inf)), axis=-1)


@kernel("fused_softmax_mask_upper_triangle_grad", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask_upper_triangle_grad(Out: Array, Out_grad: Array, *, ctx: KernelContext) -> Array:
    """softmax_grad."""
    return Steps(ctx)("softmax_grad", Out=Out, Out_grad=Out_grad, axis=-1)
