"""box_clip: all of the op but its kernel."""

from __future__ import annotations

from oprack import op
from oprack.op import InferShapeContext, OpDef, empty_grad
from oprack.op.sbp import sequences


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
