"""deformable_conv: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import GradOpDef, InferShapeContext
from oprack.op.sbp import leading

from oprack_detection.ops.conv._deformable_conv import (
    DEFORMABLE_GROUPS,
    GROUPS,
    IM2COL_STEP,
    DeformableOp,
    infer_deformable_conv,
)


class DeformableConv(DeformableOp, type="deformable_conv"):
    r"""Convolution whose taps are shifted and weighted per position:
    $$Output(p) = \sum_k Filter_k \cdot Mask_k(p) \cdot Input(p + k + Offset_k(p))$$, bilinear, 0 outside"""

    Mask = op.Input("Weight of each tap [N, deformable_groups * kh * kw, OH, OW].")
    deformable_groups = DEFORMABLE_GROUPS
    groups = GROUPS
    im2col_step = IM2COL_STEP

    sbp = leading(("Input", "Offset", "Mask"), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_deformable_conv(ctx, (("Offset", 2), ("Mask", 1)))


class DeformableConvGrad(GradOpDef, of=DeformableConv, reads="Input Offset Filter Mask"):
    """Gradients of the maps, the shifts, the filter and the weights of taps."""
