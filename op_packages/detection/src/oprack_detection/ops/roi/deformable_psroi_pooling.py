"""deformable_psroi_pooling and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    return ctx.require_rank("ROIs", 2)[0], *(ctx.attr(n) for n in ("output_dim", "pooled_height", "pooled_width"))


class DeformablePsroiPooling(OpDef, type="deformable_psroi_pooling"):
    r"""$$Output_{r,c,i,j} = \frac{1}{TopCount_{r,c,i,j}} \sum_{p,q} Input_{(c G_h + g_i) G_w + g_j}\left(y_1 + i b_h +
    p \frac{b_h}{S} + t^y, x_1 + j b_w + q \frac{b_w}{S} + t^x\right)$$

    psroi_pool by S x S bilinear samples, S = sample_per_part, in bins of b_h x b_w that Trans shifts: t is trans_std
    times the size of the region times Trans in the part of bin (i, j) (Dai et al., 2017). Samples outside of the map
    do not count; g are the groups of the bin.
    """

    Input_ = Input("Feature maps [N, output_dim x group_size, H, W].")
    ROIs = Input("Regions [R, 4] with LoD: xmin, ymin, xmax, ymax.")
    Trans = Input("Shifts [R, 2 x classes, part_size]: of x, then of y.")
    TopCount = Output("Samples that counted.", stop_gradient=True)
    Output_ = Output("[R, output_dim, pooled_height, pooled_width].")
    no_trans = Attr(REQUIRED, "Leave Trans out.", type=AttrType.BOOLEAN)
    spatial_scale = Attr(REQUIRED, "From coordinates of ROIs to those of Input.", type=AttrType.FLOAT)
    output_dim = Attr(REQUIRED, "Channels of Output.", type=AttrType.INT).greater_than(0)
    group_size = Attr(REQUIRED, "Groups of channels, by rows and columns of bins.", type=AttrType.INTS)
    pooled_height = Attr(REQUIRED, "Rows of bins.", type=AttrType.INT).greater_than(0)
    pooled_width = Attr(REQUIRED, "Columns of bins.", type=AttrType.INT).greater_than(0)
    part_size = Attr(REQUIRED, "Rows and columns of Trans.", type=AttrType.INTS)
    sample_per_part = Attr(REQUIRED, "Samples of a bin in each direction.", type=AttrType.INT).greater_than(0)
    trans_std = Attr(REQUIRED, "Factor of Trans.", type=AttrType.FLOAT)
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("ROIs")
        ctx.require_dims("ROIs", (-1, 4), why="xmin, ymin, xmax, ymax")
        group, part = ctx.attr("group_size"), ctx.attr("part_size")
        ctx.require(
            len(group) == len(part) == 2 and min(*group, *part) > 0,
            f"group_size is {list(group)} and part_size {list(part)}; expected two positive numbers each",
        )
        channels = ctx.attr("output_dim") * group[0] * group[1]
        ctx.require_dims("Input", (-1, channels, -1, -1), why="output_dim times group_size channels")
        if not ctx.attr("no_trans"):
            trans = ctx.require_rank("Trans", 4)
            ctx.require_dims("Trans", (ctx.dim("ROIs")[0], -1, *part), why="shifts of each region, by part_size")
            classes = trans[1] // 2
            fits = trans[1] < 0 or (trans[1] % 2 == 0 and classes > 0 and ctx.attr("output_dim") % classes == 0)
            ctx.require(fits, f"Trans has {trans[1]} channels; expected two for each class, which divide output_dim")
        for slot in ("TopCount", "Output"):
            ctx.set_dim(slot, _output_dims(ctx))


class DeformablePsroiPoolingGrad(
    GradOpDef,
    of=DeformablePsroiPooling,
    reads="Input ROIs Trans TopCount Output@GRAD",
    grads_of="Input Trans?",
):
    """Each bin's gradient goes to the pixels around its samples; Trans@GRAD is the slope along the shift."""

    expected_kernel_type = dtype_of("Input")
