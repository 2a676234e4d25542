"""Definitions of ops that match boxes with ground truth and choose what a detector learns from."""

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

# What rpn_target_assign and retinanet_target_assign share: slots and shapes.
ANCHOR = Input("Anchors [A, 4] in pixels, so a box is xmax - xmin + 1 wide.")

GT_BOXES = Input("Boxes to find [G, 4] with one LoD level: those of each image.")

IS_CROWD = Input("1 for a box of a crowd, which no anchor learns, [G, 1] int32; LoD of GtBoxes.")

IM_INFO = Input("Height, width and scale of each image [N, 3].")

LOCATION = Output("Anchors that learn a box [F], int32, counted through all images; LoD: those of each image.")

SCORE = Output("Anchors that learn a score [S], int32: those of a box, then the background.")

TARGET_BOX = Output("What they learn [F, 4]: the box as a code relative to the anchor.")

TARGET_LABEL = Output("Classes of the anchors of ScoreIndex [S, 1], int32; 0: background.")

INSIDE_WEIGHT = Output("1 where TargetBBox counts [F, 4].")


class AnchorTargetOp(OpDef):
    """Rules of the ops that say what anchors learn."""

    make_grad = empty_grad
    expected_kernel_type = dtype_of("Anchor")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("Anchor", (-1, 4))
        ctx.require_dims("GtBoxes", (-1, 4))
        ctx.require_dims("ImInfo", (-1, 3))
        ctx.require_lod("GtBoxes")
        ctx.require_lod("IsCrowd")
        shapes = {
            "LocationIndex": (-1,),
            "ScoreIndex": (-1,),
            "TargetBBox": (-1, 4),
            "TargetLabel": (-1, 1),
            "BBoxInsideWeight": (-1, 4),
        }
        for slot, dims in shapes.items():
            ctx.set_dim(slot, dims)
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("LocationIndex", "ScoreIndex", "TargetLabel"):
            ctx.set_dtype(slot, "int32")
        for slot in ("TargetBBox", "BBoxInsideWeight"):
            ctx.set_dtype(slot, ctx.dtype("GtBoxes"))


class BipartiteMatch(OpDef, type="bipartite_match"):
    r"""$$(r, c) = \arg\max DistMat$$ over rows and columns that have no partner yet, until every row or column has one

    Greedy matching of boxes to find (rows) with priors (columns), image by image. With per_prediction, a column that is
    left gets the row that is nearest to it, where that is at least dist_threshold.
    """

    DistMat = Input("Nearness [rows, columns]; LoD: the rows of each image. Without LoD there is one image.")
    ColToRowMatchIndices = Output("Row of each column [images, columns], int32, counted within its image; -1: none.")
    ColToRowMatchDist = Output("How near it is [images, columns]; 0: none.")
    match_type = Attr("bipartite", "bipartite, or per_prediction.").in_set(("bipartite", "per_prediction"))
    dist_threshold = Attr(0.5, "Least nearness for per_prediction.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = ctx.require_rank("DistMat", 2)[1]
        lod = ctx.lod("DistMat")
        images = len(lod[-1]) - 1 if lod else 1 if ctx.is_runtime else -1
        for slot in ("ColToRowMatchIndices", "ColToRowMatchDist"):
            ctx.set_dim(slot, (images, columns))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("ColToRowMatchIndices", "int32")
        ctx.set_dtype("ColToRowMatchDist", ctx.dtype("DistMat"))


class GenerateMaskLabels(OpDef, type="generate_mask_labels"):
    r"""$$g(r) = \operatorname{argmax}_g IoU(r, box(GtSegms_g)), \; MaskInt32_{r, class, y, x} = [\text{pixel } (y, x)
    \text{ of } r \text{ lies in a polygon of } g(r)]$$ for the class of r, and -1 for all other classes

    What the branch for masks of Mask R-CNN (He et al., 2017) learns: each region with a class other than 0 is laid out
    as resolution x resolution pixels, and takes the outline of the object whose box it overlaps most, crowds left out.
    An image without such a region gives its first region of class 0, with -1 everywhere.
    """

    ImInfo = Input("Height, width and scale of each image [N, 3].")
    GtClasses = Input("Classes of the objects [G, 1], int32, with LoD: those of each image.")
    IsCrowd = Input("1 for a crowd, which no region learns, [G, 1] int32; LoD of GtClasses.")
    GtSegms = Input(
        "Corners (x, y) of polygons [S, 2] in pixels of the image before it was scaled. Three LoD levels: objects of "
        "each image, polygons of each object, corners of each polygon."
    )
    Rois = Input("Regions [R, 4] in pixels of the scaled image, with LoD: those of each image.")
    LabelsInt32 = Input("Their classes [R, 1], int32; LoD of Rois.")
    MaskRois = Output("Regions that learn a mask [P, 4]; LoD: those of each image.")
    RoiHasMaskInt32 = Output("Which of the image's regions each of them is [P, 1].")
    MaskInt32 = Output("Masks [P, num_classes resolution^2]: 0 or 1 at the place of the class, else -1.")
    num_classes = Attr(REQUIRED, "Number of classes.", type=AttrType.INT)
    resolution = Attr(REQUIRED, "Width and height of a mask.", type=AttrType.INT)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Rois")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("ImInfo", (-1, 3))
        ctx.require_dims("GtSegms", (-1, 2), why="x and y of each corner")
        for slot in ("GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32"):
            ctx.require_lod(slot)
        classes, size = ctx.attr("num_classes"), ctx.attr("resolution")
        ctx.require(
            classes > 0 and size > 0, f"num_classes is {classes} and resolution is {size}; expected at least 1 of each"
        )
        for slot, width in (("MaskRois", 4), ("RoiHasMaskInt32", 1), ("MaskInt32", classes * size * size)):
            ctx.set_dim(slot, (-1, width))
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("MaskRois", ctx.dtype("Rois"))
        ctx.set_dtype("RoiHasMaskInt32", "int32")
        ctx.set_dtype("MaskInt32", "int32")


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


class MineHardExamples(OpDef, type="mine_hard_examples"):
    r"""$$negatives_n = \operatorname{top}_k \{m : MatchIndices_{n,m} = -1, \; MatchDist_{n,m} <
    neg\_dist\_threshold\}$$ by ClsLoss, with k = neg_pos_ratio times the priors that have a match

    With mining_type hard_example the sample_size priors of the greatest ClsLoss + LocLoss learn: those without a match
    are negatives, and matches of the others are taken back (SSD, Liu et al., 2016).
    """

    ClsLoss = Input("Loss of the class of each prior [N, priors].")
    LocLoss = Input("Loss of its box [N, priors].", dispensable=True)
    MatchIndices = Input("Matches of the priors [N, priors], int32; -1: none.")
    MatchDist = Input("How near the matches are [N, priors].")
    NegIndices = Output("Negatives [K, 1], int32; LoD: those of each image.")
    UpdatedMatchIndices = Output("Matches that stay [N, priors].")
    neg_pos_ratio = Attr(1.0, "Negatives for each match.")
    neg_dist_threshold = Attr(0.5, "Negatives are less near to any box than this.")
    sample_size = Attr(0, "Priors of each image that learn, for hard_example.")
    mining_type = Attr("max_negative", "max_negative or hard_example.").in_set(("max_negative", "hard_example"))
    make_grad = empty_grad
    expected_kernel_type = dtype_of("ClsLoss")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("ClsLoss", 2)
        for slot in ("LocLoss", "MatchIndices", "MatchDist"):
            ctx.require_dims(slot, dims, why="the shape of ClsLoss")
        hard = ctx.attr("mining_type") == "hard_example"
        name = "sample_size" if hard else "neg_pos_ratio"
        value = ctx.attr(name)
        ctx.require(value > 0, f"{name} is {value}; expected more than 0 for mining_type {ctx.attr('mining_type')!r}")
        ctx.set_dim("NegIndices", (-1, 1))
        ctx.set_lod_level("NegIndices", 1)
        ctx.set_dim("UpdatedMatchIndices", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("NegIndices", "UpdatedMatchIndices"):
            ctx.set_dtype(slot, "int32")


class RetinanetTargetAssign(AnchorTargetOp, type="retinanet_target_assign"):
    r"""$$positive = \{a : IoU(a, g) \ge positive\_overlap$$ for a box g, or a overlaps a box more than any other
    anchor$$\}, \; negative = \{a : \max_g IoU(a, g) < negative\_overlap\}$$

    What the anchors of RetinaNet learn: all of them, each its box's class (Lin et al., 2017).
    """

    Anchor = ANCHOR
    GtBoxes = GT_BOXES
    GtLabels = Input("Classes of GtBoxes [G, 1], int32, from 1 on; LoD of GtBoxes.")
    IsCrowd = IS_CROWD
    ImInfo = IM_INFO
    LocationIndex = LOCATION
    ScoreIndex = SCORE
    TargetBBox = TARGET_BOX
    TargetLabel = TARGET_LABEL
    BBoxInsideWeight = INSIDE_WEIGHT
    ForegroundNumber = Output("Positive anchors of each image and one more [N, 1], int32.")
    positive_overlap = Attr(0.5, "Overlap from which on an anchor is positive.")
    negative_overlap = Attr(0.4, "Overlap below which an anchor is negative.")

    def infer_shape(ctx: InferShapeContext) -> None:
        AnchorTargetOp.infer_shape(ctx)
        ctx.set_dim("ForegroundNumber", (-1, 1))
        ctx.set_lod_level("ForegroundNumber", 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        AnchorTargetOp.infer_var_type(ctx)
        ctx.set_dtype("ForegroundNumber", "int32")


class RpnTargetAssign(AnchorTargetOp, type="rpn_target_assign"):
    r"""$$positive = \{a : IoU(a, g) \ge rpn\_positive\_overlap$$ for a box g, or a overlaps a box more than any other
    anchor$$\}, \; negative = \{a : \max_g IoU(a, g) < rpn\_negative\_overlap\}$$

    What the anchors of a region proposal net learn: rpn_batch_size_per_im anchors of each image, of which at most
    rpn_fg_fraction are positive (Faster R-CNN, Ren et al., 2015).
    """

    Anchor = ANCHOR
    GtBoxes = GT_BOXES
    IsCrowd = IS_CROWD
    ImInfo = IM_INFO
    LocationIndex = LOCATION
    ScoreIndex = SCORE
    TargetBBox = TARGET_BOX
    TargetLabel = TARGET_LABEL
    BBoxInsideWeight = INSIDE_WEIGHT
    rpn_batch_size_per_im = Attr(256, "Anchors of each image that learn.")
    rpn_straddle_thresh = Attr(
        REQUIRED, "Pixels that an anchor may lie outside of the image; below 0: any.", type=AttrType.FLOAT
    )
    rpn_positive_overlap = Attr(0.7, "Overlap from which on an anchor is positive.")
    rpn_negative_overlap = Attr(0.3, "Overlap below which an anchor is negative.")
    rpn_fg_fraction = Attr(0.25, "Most positive anchors, as a share of rpn_batch_size_per_im.")
    use_random = Attr(True, "Draw the anchors; else the first ones learn.")


# target_assign (Paddle 1.x): all of the op but its kernel.
class TargetAssign(OpDef, type="target_assign"):
    r"""$$Out_{n,m} = X_{o_n + MatchIndices_{n,m}, \; m \bmod P}$$ with weight 1; mismatch_value with weight 0 where
    MatchIndices is -1

    o_n is the first row of image n. NegIndices get mismatch_value with weight 1.
    """

    X = Input("Targets [rows, P, K] with one LoD level: the rows of each image. P is 1 or the number of priors.")
    MatchIndices = Input("Row of each prior [N, M], int32, counted within its image; -1: none.")
    NegIndices = Input("Priors that learn mismatch_value [K, 1], int32; LoD: those of each image.", dispensable=True)
    Out = Output("Target of each prior [N, M, K].")
    OutWeight = Output("1 where it counts [N, M, 1], float32.")
    mismatch_value = Attr(0, "Target of priors without a match.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, (n, m) = ctx.require_rank("X", 3), ctx.require_rank("MatchIndices", 2)
        ctx.require_lod("X")
        if ctx.has_input("NegIndices"):
            ctx.require_lod("NegIndices")
        ctx.set_dim("Out", (n, m, x[2]))
        ctx.set_dim("OutWeight", (n, m, 1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("OutWeight", "float32")
