"""box_coder: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


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
