"""generate_mask_labels: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


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
