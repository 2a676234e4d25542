"""Kernels of attention and its softmax."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


# attend ---------------------------------------------------------------------------------------------------------------
# Attention as steps.
def attend(step: Steps, parts: Array, alpha: float, bias: Array | None = None) -> Array:
    """softmax(alpha Q K^T + bias) V: [B, S, H, D] from parts [B, S, 3, H, D]."""
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    scores = step("scale", X=step("matmul_v2", X=q, Y=k, trans_y=True), scale=alpha)
    if bias is not None:
        scores = step("elementwise_add", X=scores, Y=bias)
    out = step("matmul_v2", X=step("softmax", X=scores, axis=-1), Y=v)
    return out.swapaxes(1, 2)


# fused_softmax_mask ---------------------------------------------------------------------------------------------------
@kernel("fused_softmax_mask", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask(X: Array, Mask: Array, *, ctx: KernelContext) -> Array:
    """elementwise_add, softmax."""
    step = Steps(ctx)
    return step("softmax", X=step("elementwise_add", X=X, Y=Mask), axis=-1)


@kernel("fused_softmax_mask_grad", place=BOTH, dtypes=DTYPES)
def fused_softmax_mask_grad(Softmax: Array, Out_grad: Array, *, ctx: KernelContext) -> Array:
    """softmax_grad."""
    return Steps(ctx)("softmax_grad", Out=Softmax, Out_grad=Out_grad, axis=-1)


# fused_softmax_mask_upper_triangle ------------------------------------------------------------------------------------
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


# multihead_matmul -----------------------------------------------------------------------------------------------------
@kernel("multihead_matmul", place=BOTH, dtypes=DTYPES)
def multihead_matmul(
    Input: Array,
    W: Array,
    Bias: Array,
    BiasQK: Array | None = None,
    *,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
) -> Array:
    """fc, then attention."""
    step, (batch, steps, size) = Steps(ctx), Input.shape
    parts = step.dense(Input, W.reshape(size, 3 * size), Bias, dims=2)
    parts = parts.reshape(batch, steps, 3, head_number, size // head_number)
    return attend(step, parts, alpha, BiasQK).reshape(Input.shape)


# self_dp_attention ----------------------------------------------------------------------------------------------------
@kernel("self_dp_attention", place=BOTH, dtypes=DTYPES)
def self_dp_attention(X: Array, *, alpha: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """matmul_v2, scale, softmax, matmul_v2."""
    return xp.ascontiguousarray(attend(Steps(ctx), X, alpha))
