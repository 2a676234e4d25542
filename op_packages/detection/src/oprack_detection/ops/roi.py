"""Definitions of region pooling."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
)
from oprack.types import AttrType


def _deformable_psroi_pooling_output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
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
            ctx.set_dim(slot, _deformable_psroi_pooling_output_dims(ctx))


class DeformablePsroiPoolingGrad(
    GradOpDef,
    of=DeformablePsroiPooling,
    reads="Input ROIs Trans TopCount Output@GRAD",
    grads_of="Input Trans?",
):
    """Each bin's gradient goes to the pixels around its samples; Trans@GRAD is the slope along the shift."""

    expected_kernel_type = dtype_of("Input")


# prroi_pool (Paddle 1.x) and its gradient: all of the ops but their kernels.
def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    return rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")


class PrroiPool(OpDef, type="prroi_pool"):
    r"""$$Out_{r,c,i,j} = \frac{1}{|bin|} \int_{bin_{r,i,j}} X_c(y, x) \, dy \, dx$$ with X interpolated bilinearly

    The exact mean over a bin, which is smooth in the region's corners; 0 for an empty bin (Jiang et al., 2018).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or BatchRoINums tells the image of each.")
    BatchRoINums = Input("Regions of each image [N].", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class PrroiPoolGrad(
    GradOpDef,
    of=PrroiPool,
    reads="X Out ROIs BatchRoINums Out@GRAD",
    grads_of="X ROIs",
    dims={"Out@GRAD": _output_dims},
):
    """X@GRAD has each pixel's share of the integrals; ROIs@GRAD how the means change as sides of the bins move."""

    expected_kernel_type = dtype_of("X")


def _psroi_pool_output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
    ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
    channels, height, width = (ctx.attr(n) for n in ("output_channels", "pooled_height", "pooled_width"))
    ctx.require(
        x[1] in (-1, channels * height * width),
        f"X has {x[1]} channels; expected output_channels x pooled_height x pooled_width, {[channels, height, width]}",
    )
    return rois[0], channels, height, width


class PsroiPool(OpDef, type="psroi_pool"):
    r"""$$Out_{r,c,i,j} = \operatorname{mean}_{(y, x) \in bin_{r,i,j}} X_{(c H' + i) W' + j, y, x}$$

    The mean over the pixels that bin (i, j) of region r touches, from a channel of the bin's own; 0 for a bin without
    pixels. H' = pooled_height, W' = pooled_width (R-FCN, Dai et al., 2016).
    """

    X = Input("Feature maps [N, output_channels pooled_height pooled_width, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("[R, output_channels, pooled_height, pooled_width].")
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    output_channels = Attr(1, "Channels of Out.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _psroi_pool_output_dims(ctx))


class PsroiPoolGrad(
    GradOpDef,
    of=PsroiPool,
    reads="X ROIs RoisNum",
    shape_of="X",
    grads_of="X",
    dims={"Out@GRAD": _psroi_pool_output_dims},
):
    """Each bin's gradient is spread evenly over its pixels."""


class RoiAlign(OpDef, type="roi_align"):
    r"""$$Out_{r,c,i,j} = \frac{1}{n_y n_x} \sum_{p,q} X_c\left(y_1 + \frac{h}{H'} (i + \frac{p + 0.5}{n_y}), x_1 +
    \frac{w}{W'} (j + \frac{q + 0.5}{n_x})\right)$$

    with bilinear samples of the region's image, which are 0 more than a pixel outside of it. (y_1, x_1) is the corner
    and h, w the size of region r in pixels of X, H' = pooled_height, W' = pooled_width (Mask R-CNN, He et al., 2017).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    sampling_ratio = Attr(-1, "Samples per bin and direction; not positive: as many as a bin has pixels.")
    aligned = Attr(False, "Pixel centres lie at 0.5; regions may be smaller than a pixel.")
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_align")
        .checkpoint("the unused input RpnRoisLod is gone", ("delete_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
        .checkpoint("exact pixel centres", ("new_attr", "aligned", False))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class RoiAlignGrad(
    GradOpDef, of=RoiAlign, reads="ROIs RoisNum", shape_of="X", grads_of="X", dims={"Out@GRAD": _output_dims}
):
    """Each bin's gradient is spread over the pixels that its samples read."""


# roi_perspective_transform (Paddle 1.x) and its gradient: all of the ops but their kernels.
class RoiPerspectiveTransform(OpDef, type="roi_perspective_transform"):
    r"""$$Out_{r,c,y,x} = X_c\left(\frac{m_3 x + m_4 y + m_5}{m_6 x + m_7 y + 1}, \frac{m_0 x + m_1 y + m_2}{m_6 x + m_7
    y + 1}\right)$$, m the TransformMatrix of quadrangle r

    Each quadrangle of an image made a rectangle, by bilinear samples; 0 outside of the quadrangle and of the image. The
    rectangle keeps the ratio of the mean lengths of opposite sides as far as transformed_width allows.
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Corners [R, 8] with LoD: x and y of the upper left one and on clockwise.")
    Out = Output("[R, C, transformed_height, transformed_width], LoD of ROIs.")
    Mask = Output("int32 [R, 1, transformed_height, transformed_width]: 1 where a sample lies inside.")
    TransformMatrix = Output("[R, 9].", stop_gradient=True)
    Out2InIdx = Output("int32 [R x height x width, 4], the pixels of X around each sample.", intermediate=True)
    Out2InWeights = Output("[R x height x width, 4], their weights.", intermediate=True)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.")
    transformed_height = Attr(1, "Rows of Out.").greater_than(0)
    transformed_width = Attr(1, "Columns of Out.").greater_than(0)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("ROIs")
        channels = ctx.require_rank("X", 4)[1]
        regions = ctx.require_rank("ROIs", 2)[0]
        ctx.require_dims("ROIs", (-1, 8), why="the corners of a quadrangle")
        size = ctx.attr("transformed_height"), ctx.attr("transformed_width")
        ctx.set_dim("Out", (regions, channels, *size))
        ctx.share_lod("ROIs", "Out")
        ctx.set_dim("Mask", (regions, 1, *size))
        ctx.set_dim("TransformMatrix", (regions, 9))
        for slot in ("Out2InIdx", "Out2InWeights"):
            ctx.set_dim(slot, (-1 if regions < 0 else regions * size[0] * size[1], 4))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Out", "TransformMatrix", "Out2InWeights"):
            ctx.set_dtype(slot, ctx.dtype("X"))
        for slot in ("Mask", "Out2InIdx"):
            ctx.set_dtype(slot, "int32")


class RoiPerspectiveTransformGrad(
    GradOpDef,
    of=RoiPerspectiveTransform,
    reads="X ROIs Out2InIdx Out2InWeights Out@GRAD",
    shape_of="X ROIs",
    grads_of="X",
):
    """Each element's gradient goes to the pixels around its sample."""

    expected_kernel_type = dtype_of("Out@GRAD")


class RoiPool(OpDef, type="roi_pool"):
    r"""$$Out_{r,c,i,j} = \max_{(y, x) \in bin_{i,j}(r)} X_{c,y,x}$$; 0 for an empty bin.

    The corners of region r are rounded to pixels; bin i has the rows from $$\lfloor i h / H' \rfloor$$ to before
    $$\lceil (i + 1) h / H' \rceil$$ of its h, with H' = pooled_height, and columns alike (Fast R-CNN, Girshick, 2015).
    """

    X = Input("Feature maps [N, C, H, W].")
    ROIs = Input("Regions [R, 4] as xmin, ymin, xmax, ymax; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    Out = Output("Pooled features [R, C, pooled_height, pooled_width].")
    Argmax = Output("Position of each maximum in its map, int64; -1 for an empty bin.", intermediate=True)
    pooled_height = Attr(1, "Rows of bins.").greater_than(0)
    pooled_width = Attr(1, "Columns of bins.").greater_than(0)
    spatial_scale = Attr(1.0, "From coordinates of ROIs to those of X.").greater_than(0.0)
    expected_kernel_type = dtype_of("X")
    versions = (
        OpVersion("roi_pool")
        .checkpoint("the unused input RpnRoisLod is gone", ("delete_input", "RpnRoisLod", None))
        .checkpoint("regions per image as a tensor", ("new_input", "RoisNum", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        x, rois = ctx.require_rank("X", 4), ctx.require_rank("ROIs", 2)
        ctx.require(rois[1] in (4, -1), f"ROIs has shape {list(rois)}; expected [R, 4]")
        for slot in ("Out", "Argmax"):
            ctx.set_dim(slot, (rois[0], x[1], ctx.attr("pooled_height"), ctx.attr("pooled_width")))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Argmax", "int64")


class RoiPoolGrad(GradOpDef, of=RoiPool, reads="ROIs RoisNum Argmax", shape_of="X", grads_of="X"):
    """Each bin's gradient goes to its maximum."""
