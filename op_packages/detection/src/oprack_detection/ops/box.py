"""Definitions of boxes: coding, clipping, overlap."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import leading, sequences
from oprack.types import AttrType


class BoxClip(OpDef, type="box_clip"):
    r"""Clips boxes to their image: x to $$[0, \operatorname{round}(w / scale) - 1]$$, y likewise"""

    Input = op.Input("Boxes [N, ..., 4] with one LoD level: the boxes of each image.")
    ImInfo = op.Input("Height, width and scale of each image [B, 3].")
    Output = op.Output("Shape and LoD of Input.")
    make_grad = empty_grad
    sbp = sequences(("Input", "ImInfo"), ("Output",), per_sequence=("ImInfo",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, info = ctx.dim("Input"), ctx.require_rank("ImInfo", 2)
        ctx.require(len(dims) >= 2 and dims[-1] in (4, -1), f"Input has shape {list(dims)}; expected boxes [N, ..., 4]")
        ctx.require(info[1] in (3, -1), f"ImInfo has shape {list(info)}; expected [images, 3]")
        ctx.set_dim("Output", dims)
        ctx.share_lod("Input", "Output")


class BoxCoder(OpDef, type="box_coder"):
    r"""Boxes relative to prior boxes and back. Encoding, with centres c and sizes s of target t and prior p:
    $$((c_t - c_p) / s_p, \ln|s_t / s_p|) / variance$$; decoding inverts it"""

    PriorBox = Input("Prior boxes [M, 4].")
    PriorBoxVar = Input("Variances [M, 4].", dispensable=True)
    TargetBox = Input("Encoding: boxes [N, 4]. Decoding: codes [N, M, 4], or [M, N, 4] with axis 1.")
    OutputBox = Output("Encoding: [N, M, 4]. Decoding: shape of TargetBox. LoD of TargetBox.")
    code_type = Attr("encode_center_size", "encode_center_size or decode_center_size.").in_set(
        ("encode_center_size", "decode_center_size")
    )
    box_normalized = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")
    axis = Attr(0, "Decoding: the dim of TargetBox that the priors do not run along.").in_set((0, 1))
    variance = Attr([], "Four variances for all priors, in place of PriorBoxVar.", type=AttrType.FLOATS).size(0, 4)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        prior, target = ctx.require_rank("PriorBox", 2), ctx.dim("TargetBox")
        ctx.require(prior[1] in (4, -1), f"PriorBox has shape {list(prior)}; expected [M, 4]")
        if ctx.has_input("PriorBoxVar"):
            ctx.require(not ctx.attr("variance"), "PriorBoxVar and attribute variance are both given; expected one")
            ctx.same_dims("PriorBox", "PriorBoxVar")
        if ctx.attr("code_type") == "encode_center_size":
            ctx.require_rank("TargetBox", 2)
            ctx.require(target[1] in (4, -1), f"TargetBox has shape {list(target)}; expected [N, 4] to encode")
            ctx.set_dim("OutputBox", (target[0], prior[0], 4))
        else:
            ctx.require_rank("TargetBox", 3)
            run = target[1 - ctx.attr("axis")]
            fits = target[2] in (4, -1) and (run == prior[0] or -1 in (run, prior[0]))
            ctx.require(
                fits,
                f"TargetBox has shape {list(target)} and PriorBox {list(prior)}; expected codes with {prior[0]} priors "
                f"in dim {1 - ctx.attr('axis')} (axis is {ctx.attr('axis')}) and 4 in the last",
            )
            ctx.set_dim("OutputBox", target)
        ctx.share_lod("TargetBox", "OutputBox")


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


class IouSimilarity(OpDef, type="iou_similarity"):
    r"""$$Out_{ij} = |X_i \cap Y_j| / |X_i \cup Y_j|$$ of boxes [xmin, ymin, xmax, ymax]; 0 where both are empty"""

    X = Input("Boxes [N, 4].")
    Y = Input("Boxes [M, 4].")
    Out = Output("Similarities [N, M], LoD of X.")
    box_normalized = Attr(True, "false: corners are pixels, so a box is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 2), ctx.require_rank("Y", 2)
        ctx.require(
            x[1] in (4, -1) and y[1] in (4, -1), f"X has shape {list(x)} and Y {list(y)}; expected boxes of 4 numbers"
        )
        ctx.set_dim("Out", (x[0], y[0]))
        ctx.share_lod("X", "Out")


class PolygonBoxTransform(OpDef, type="polygon_box_transform"):
    r"""$$Output_{n,c,y,x} = 4 x - Input_{n,c,y,x}$$ for even channels c, $$4 y - Input_{n,c,y,x}$$ for odd ones

    Corners of polygons from their distances to each pixel, at a quarter of the image's size (EAST, Zhou et al., 2017).
    """

    Input = op.Input("Distances [N, numbers of the corners, H, W]: x and y in turn.")
    Output = op.Output("Corners, shape of Input.")
    make_grad = empty_grad
    sbp = leading(("Input",), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 4)
        ctx.require(
            dims[1] < 0 or dims[1] % 2 == 0, f"Input has {dims[1]} channels; expected an x and a y for each corner"
        )
        ctx.set_dim("Output", dims)
