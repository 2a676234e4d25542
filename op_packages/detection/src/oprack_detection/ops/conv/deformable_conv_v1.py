"""deformable_conv_v1: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext

from oprack_detection.ops.conv._deformable_conv import (
    DEFORMABLE_GROUPS,
    GROUPS,
    IM2COL_STEP,
    DeformableOp,
    infer_deformable_conv,
)


class DeformableConvV1(DeformableOp, type="deformable_conv_v1"):
    r"""$$Output(p) = \sum_k Filter_k \cdot Input(p + k + Offset_k(p))$$, bilinear, 0 outside.

    deformable_conv without weights of taps (Dai et al., 2017).
    """

    groups = GROUPS
    deformable_groups = DEFORMABLE_GROUPS
    im2col_step = IM2COL_STEP

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_deformable_conv(ctx, (("Offset", 2),))


class DeformableConvV1Grad(GradOpDef, of=DeformableConvV1, reads="Input Offset Filter"):
    """Gradients of the maps, the shifts and the filter."""
