"""The kernel of the four fused_elementwise ops."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext

from oprack_fused.kernels._steps import Steps
from oprack_fused.kernels.onednn._post import activated


def fused_elementwise(
    X: Array,
    Y: Array,
    *,
    axis: int,
    fuse_activation: str,
    fuse_alpha: float,
    fuse_beta: float,
    fused_output_scale: float,
    fused_unsqueeze2_axes: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """The plain op of that name, an activation, a factor and new dims."""
    step = Steps(ctx)
    out = step(ctx.op_type.removeprefix("fused_"), X=X, Y=Y, axis=axis)
    out = activated(out, fuse_activation, fuse_alpha, fuse_beta, step, xp)
    if fused_output_scale != 1:
        out = out * out.dtype.type(fused_output_scale)
    for at in fused_unsqueeze2_axes:
        out = xp.expand_dims(out, at)
    return out
