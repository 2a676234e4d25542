"""Kernel of fusion_seqexpand_concat_fc."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fusion_seqexpand_concat_fc", place=BOTH, dtypes=DTYPES)
def fusion_seqexpand_concat_fc(
    X: list[Array],
    FCWeight: Array,
    FCBias: Array | None = None,
    *,
    fc_activation: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """sequence_expand, concat, fc."""
    step, (first, *others) = Steps(ctx), X
    lods = {"Y": ctx.lod("X")[-1:]}
    rows = [first, *(step("sequence_expand", X=x, Y=first, ref_level=0, lods=lods) for x in others)]
    out = step.dense(step("concat", X=rows, axis=1), FCWeight, FCBias, fc_activation)
    return out, xp.empty(0, out.dtype)
