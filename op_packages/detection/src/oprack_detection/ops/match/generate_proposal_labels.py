"""generate_proposal_labels: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType


class GenerateProposalLabels(OpDef, type="generate_proposal_labels"):
    r"""$$foreground = \{r : \max_g IoU(r, g) \ge fg\_thresh\}, \; background = \{r : bg\_thresh\_lo \le \max_g IoU(r,
    g) < bg\_thresh\_hi\}$$

    What the second stage of a detector learns: batch_size_per_im regions of each image, from the proposals and the
    boxes to find themselves, with the class of each and its box as a code (Fast R-CNN, Girshick, 2015). With
    is_cascade_rcnn all of the regions learn, but for empty ones and those with MaxOverlap of 1.
    """

    RpnRois = Input("Proposals [R, 4] with one LoD level: those of each image.")
    GtClasses = Input("Classes of GtBoxes [G, 1], int32; LoD of GtBoxes.")
    IsCrowd = Input("1 for a box of a crowd, which no region learns, [G, 1] int32; LoD of GtBoxes.")
    GtBoxes = Input("Boxes to find [G, 4] in pixels of the image before it was scaled, with LoD.")
    ImInfo = Input("Height, width and scale of each image [N, 3].")
    MaxOverlap = Input("Greatest overlap of each proposal [R], for is_cascade_rcnn.", dispensable=True)
    Rois = Output("Regions that learn [P, 4]; LoD: those of each image.")
    LabelsInt32 = Output("Their classes [P, 1], int32; 0: background.")
    BboxTargets = Output("Their boxes as codes, at the place of their class [P, 4 class_nums].")
    BboxInsideWeights = Output("1 where BboxTargets holds a code, shape of BboxTargets.")
    BboxOutsideWeights = Output("The same as BboxInsideWeights.")
    MaxOverlapWithGT = Output("Greatest overlap of each [P].")
    batch_size_per_im = Attr(REQUIRED, "Regions of each image that learn.", type=AttrType.INT)
    fg_fraction = Attr(REQUIRED, "Most foreground, as a share of batch_size_per_im.", type=AttrType.FLOAT)
    fg_thresh = Attr(REQUIRED, "Overlap from which on a region is foreground.", type=AttrType.FLOAT)
    bg_thresh_hi = Attr(REQUIRED, "Overlap below which a region is background.", type=AttrType.FLOAT)
    bg_thresh_lo = Attr(REQUIRED, "Overlap from which on it is.", type=AttrType.FLOAT)
    bbox_reg_weights = Attr(REQUIRED, "Four numbers by which codes are divided.", type=AttrType.FLOATS)
    class_nums = Attr(REQUIRED, "Number of classes.", type=AttrType.INT)
    use_random = Attr(True, "Draw the regions; else the first ones learn.")
    is_cascade_rcnn = Attr(False, "A later stage: all regions learn.")
    is_cls_agnostic = Attr(False, "One code for all classes, at the place of class 1.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("RpnRois")
    versions = (
        OpVersion("generate_proposal_labels")
        .checkpoint("greatest overlap of each region", ("new_output", "MaxOverlapWithGT", None))
        .checkpoint("greatest overlap of each proposal", ("new_input", "MaxOverlap", None))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("RpnRois", (-1, 4))
        ctx.require_dims("GtBoxes", (-1, 4))
        ctx.require_dims("ImInfo", (-1, 3))
        given = ctx.attr("bbox_reg_weights")
        ctx.require(len(given) == 4, f"bbox_reg_weights is {list(given)}; expected four numbers")
        for slot in ("RpnRois", "GtClasses", "IsCrowd", "GtBoxes"):
            ctx.require_lod(slot)
        width = 4 * ctx.attr("class_nums")
        shapes = {"Rois": (-1, 4), "LabelsInt32": (-1, 1), "MaxOverlapWithGT": (-1,)}
        tables = dict.fromkeys(("BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"), (-1, width))
        for slot, dims in (shapes | tables).items():
            ctx.set_dim(slot, dims)
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Rois", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT"):
            ctx.set_dtype(slot, ctx.dtype("RpnRois"))
        ctx.set_dtype("LabelsInt32", "int32")
