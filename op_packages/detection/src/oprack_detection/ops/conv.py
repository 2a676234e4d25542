"""Definitions of convolutions."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading

# What both versions of deformable_conv share: slots, attributes, the rule of shapes.
DEFORMABLE_GROUPS = Attr(1, "Groups of channels with shifts of their own.").greater_than(0)

GROUPS = Attr(1, "Groups of channels with filters of their own.").greater_than(0)

IM2COL_STEP = Attr(64, "Images that are unrolled at once.").greater_than(0)


class DeformableOp(OpDef):
    """Slots of both versions, and the attributes that come first."""

    Input = op.Input("Feature maps [N, C, H, W].")
    Offset = op.Input("Shift of each tap [N, 2 * deformable_groups * kh * kw, OH, OW], y before x.")
    Filter = op.Input("Weights [M, C / groups, kh, kw].")
    Output = op.Output("Feature maps [N, M, OH, OW].")
    strides = Attr([1, 1], "Steps along H and W.").size(2).each(lambda v: v > 0, "greater than 0")
    paddings = Attr([0, 0], "Zeros on both sides of H and W.").size(2).each(lambda v: v >= 0, "at least 0")
    dilations = Attr([1, 1], "Distances of taps along H and W.").size(2).each(lambda v: v > 0, "greater than 0")


def infer_deformable_conv(ctx: InferShapeContext, tap_slots: tuple[tuple[str, int], ...]) -> None:
    """tap_slots: (slot, channels per tap) of the inputs that have the size of Output."""
    x, weight = ctx.require_rank("Input", 4), ctx.require_rank("Filter", 4)
    groups, deformable = ctx.attr("groups"), ctx.attr("deformable_groups")
    ctx.require(
        x[1] == weight[1] * groups or -1 in (x[1], weight[1]),
        f"Input has shape {list(x)} and Filter {list(weight)}; expected {weight[1]} * groups {groups} channels",
    )
    ctx.require(
        weight[0] < 0 or weight[0] % groups == 0,
        f"Filter has {weight[0]} outputs; expected a multiple of groups {groups}",
    )
    ctx.require(
        x[1] < 0 or x[1] % deformable == 0,
        f"Input has {x[1]} channels; expected a multiple of deformable_groups {deformable}",
    )
    out = []
    for i in range(2):
        if x[2 + i] < 0 or weight[2 + i] < 0:
            out.append(-1)
            continue
        reach = ctx.attr("dilations")[i] * (weight[2 + i] - 1) + 1
        space = x[2 + i] + 2 * ctx.attr("paddings")[i]
        ctx.require(space >= reach, f"Input has shape {list(x)}: smaller than the kernel's {reach}")
        out.append((space - reach) // ctx.attr("strides")[i] + 1)
    taps = deformable * weight[2] * weight[3] if min(weight[2:]) >= 0 else -1
    for slot, per_tap in tap_slots:
        dims, expected = ctx.require_rank(slot, 4), (x[0], per_tap * taps if taps >= 0 else -1, *out)
        fits = all(a == b or -1 in (a, b) for a, b in zip(dims, expected, strict=True))
        ctx.require(fits, f"{slot} has shape {list(dims)}; expected {list(expected)}")
    ctx.set_dim("Output", (x[0], weight[0], *out))


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
