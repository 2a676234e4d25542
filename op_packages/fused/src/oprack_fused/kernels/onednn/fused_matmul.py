"""Kernel of fused_matmul."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps
from oprack_fused.kernels.onednn._post import activated


def _moved(x: Array, shape: list[int], axes: list[int]) -> Array:
    if shape:
        x = x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)])
    return x.transpose(axes) if axes else x


@kernel("fused_matmul", place=BOTH, dtypes=DTYPES)
def fused_matmul(
    X: Array, Y: Array, ResidualData: Array | None = None, *, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """matmul_v2, a sum, an activation, with reshapes and transpositions around."""
    a, step = ctx.attrs, Steps(ctx)
    x = xp.ascontiguousarray(_moved(X, a["fused_reshape_X"], a["fused_transpose_X"]))
    y = xp.ascontiguousarray(_moved(Y, a["fused_reshape_Y"], a["fused_transpose_Y"]))
    out = step("matmul_v2", X=x, Y=y, trans_x=a["trans_x"], trans_y=a["trans_y"])
    if a["matmul_alpha"] != 1:
        out = out * out.dtype.type(a["matmul_alpha"])
    if ResidualData is not None:
        out = out + ResidualData
    out = activated(out, a["fuse_activation"], a["fuse_alpha"], a["fuse_beta"], step, xp)
    if a["fused_output_scale"] != 1:
        out = out * out.dtype.type(a["fused_output_scale"])
    if a["fused_transpose_Out"]:
        out = out.transpose(a["fused_transpose_Out"])
    return xp.ascontiguousarray(_moved(out, a["fused_reshape_Out"], []))
