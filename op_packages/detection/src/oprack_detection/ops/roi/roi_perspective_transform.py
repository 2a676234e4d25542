"""roi_perspective_transform (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of


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
