"""What rpn_target_assign and retinanet_target_assign share: slots and shapes."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad

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
