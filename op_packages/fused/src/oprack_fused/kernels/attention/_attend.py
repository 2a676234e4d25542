"""Attention as steps."""

from __future__ import annotations

from oprack.kernel import Array

from oprack_fused.kernels._steps import Steps


def attend(step: Steps, parts: Array, alpha: float, bias: Array | None = None) -> Array:
    """softmax(alpha Q K^T + bias) V: [B, S, H, D] from parts [B, S, 3, H, D]."""
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    scores = step("scale", X=step("matmul_v2", X=q, Y=k, trans_y=True), scale=alpha)
    if bias is not None:
        scores = step("elementwise_add", X=scores, Y=bias)
    out = step("matmul_v2", X=step("softmax", X=scores, axis=-1), Y=v)
    return out.swapaxes(1, 2)
