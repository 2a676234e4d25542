"""Kernel of fusion_seqconv_eltadd_relu."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fusion_seqconv_eltadd_relu", place=BOTH, dtypes=DTYPES)
def fusion_seqconv_eltadd_relu(
    X: Array,
    Filter: Array,
    Bias: Array,
    *,
    contextLength: int,
    contextStart: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """sequence_conv, elementwise_add, relu."""
    step = Steps(ctx)
    window = {"contextLength": contextLength, "contextStart": contextStart}
    out = step("sequence_conv", X=X, Filter=Filter, lods={"X": ctx.lod("X")}, **window)
    out = step("relu", X=step("elementwise_add", X=out, Y=Bias.reshape(-1), axis=-1))
    return out, xp.empty(0, X.dtype)
