"""Kernels of fused_softmax_mask and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fused_softmax_mask", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask(X: Array, Mask: Array, *, ctx: KernelContext) -> Array:
    """elementwise_add, softmax."""
    step = Steps(ctx)
    return step("softmax", X=step("elementwise_add", X=X, Y=Mask), axis=-1)


@kernel("fused_softmax_mask_grad", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask_grad(Softmax: Array, Out_grad: Array, *, ctx: KernelContext) -> Array:
    """softmax_grad."""
    return Steps(ctx)("softmax_grad", Out=Softmax, Out_grad=Out_grad, axis=-1)
