"""deformable_conv and deformable_conv_v1: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef

_INPUT = op.Input("Feature maps [N, C, H, W].")
_OFFSET = op.Input("Shift of each tap [N, 2 * deformable_groups * kh * kw, OH, OW], y before x.")
_MASK = op.Input("Weight of each tap [N, deformable_groups * kh * kw, OH, OW].")
_FILTER = op.Input("Weights [M, C / groups, kh, kw].")
_OUTPUT = op.Output("Feature maps [N, M, OH, OW].")
_STRIDES = Attr([1, 1], "Steps along H and W.").size(2).each(lambda v: v > 0, "greater than 0")
_PADDINGS = Attr([0, 0], "Zeros on both sides of H and W.").size(2).each(lambda v: v >= 0, "at least 0")
_DILATIONS = Attr([1, 1], "Distances of taps along H and W.").size(2).each(lambda v: v > 0, "greater than 0")
_DEFORMABLE = Attr(1, "Groups of channels with shifts of their own.").greater_than(0)
_GROUPS = Attr(1, "Groups of channels with filters of their own.").greater_than(0)
_STEP = Attr(64, "Images that are unrolled at once.").greater_than(0)


def _infer_shape(ctx, tap_slots):
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


class DeformableConv(OpDef, type="deformable_conv"):
    r"""Convolution whose taps are shifted and weighted per position:
    $$Output(p) = \sum_k Filter_k \cdot Mask_k(p) \cdot Input(p + k + Offset_k(p))$$, bilinear, 0 outside"""

    Input = _INPUT
    Offset = _OFFSET
    Filter = _FILTER
    Mask = _MASK
    Output = _OUTPUT
    strides = _STRIDES
    paddings = _PADDINGS
    dilations = _DILATIONS
    deformable_groups = _DEFORMABLE
    groups = _GROUPS
    im2col_step = _STEP

    def infer_shape(ctx):
        _infer_shape(ctx, (("Offset", 2), ("Mask", 1)))


class DeformableConvGrad(GradOpDef, of=DeformableConv, reads="Input Offset Filter Mask"):
    """Gradients of the maps, the shifts, the filter and the weights of taps."""


class DeformableConvV1(OpDef, type="deformable_conv_v1"):
    """As deformable_conv without weights of taps."""

    Input = _INPUT
    Offset = _OFFSET
    Filter = _FILTER
    Output = _OUTPUT
    strides = _STRIDES
    paddings = _PADDINGS
    dilations = _DILATIONS
    groups = _GROUPS
    deformable_groups = _DEFORMABLE
    im2col_step = _STEP

    def infer_shape(ctx):
        _infer_shape(ctx, (("Offset", 2),))


class DeformableConvV1Grad(GradOpDef, of=DeformableConvV1, reads="Input Offset Filter"):
    """Gradients of the maps, the shifts and the filter."""
