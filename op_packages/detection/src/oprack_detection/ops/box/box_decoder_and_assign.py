"""box_decoder_and_assign: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad


class BoxDecoderAndAssign(OpDef, type="box_decoder_and_assign"):
    r"""$$x = p_x + v_x t_x p_w, \; w = p_w e^{\min(v_w t_w, box\_clip)}$$, and y, h likewise, for each class

    Boxes of every class from codes t relative to priors p with variances v, and for each prior the box of its best
    class other than the first, the background.
    """

    PriorBox = Input("Priors [R, 4] in pixels, so a box is xmax - xmin + 1 wide.")
    PriorBoxVar = Input("Variances [4].", dispensable=True)
    TargetBox = Input("Codes [R, 4 classes].")
    BoxScore = Input("Scores [R, classes].")
    DecodeBox = Output("Boxes of all classes [R, 4 classes].")
    OutputAssignBox = Output("Box of the best class [R, 4]; the prior where no class has a score above -1.")
    box_clip = Attr(4.135, "Most that the exponent of a size may be.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, classes = ctx.require_rank("BoxScore", 2)
        ctx.require_dims("PriorBox", (rows, 4), why="a prior for each row of BoxScore")
        ctx.require_dims("PriorBoxVar", (4,))
        ctx.require_dims("TargetBox", (rows, -1 if classes < 0 else 4 * classes), why="a box for each score")
        ctx.set_dim("DecodeBox", ctx.dim("TargetBox"))
        ctx.set_dim("OutputAssignBox", ctx.dim("PriorBox"))
        ctx.share_lod("PriorBox", "DecodeBox")
        ctx.share_lod("PriorBox", "OutputAssignBox")
