"""What the four fused_elementwise ops share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_fused.ops.onednn._post import FUSE_ACTIVATION, FUSE_ALPHA, FUSE_BETA, OUTPUT_SCALE, unquantised


class FusedElementwise(OpDef):
    """An element-wise op of two tensors, an activation, a factor, and dims of size 1 that are put in."""

    X = Input("Tensor of any shape.")
    Y = Input("Shape of X, or one that broadcasts to it from dim `axis` on.")
    Out = Output("Shape and LoD of X, with the new dims.")
    axis = Attr(-1, "The dim of X where those of Y begin; -1: at the end.")
    fuse_activation = FUSE_ACTIVATION
    fuse_alpha = FUSE_ALPHA
    fuse_beta = FUSE_BETA
    fused_output_scale = OUTPUT_SCALE
    fused_unsqueeze2_axes = Attr([], "Where dims of size 1 are put in, one after the other.", type=AttrType.INTS)
    scale_x = unquantised("Scale of X")
    scale_y = unquantised("Scale of Y")
    scale_out = unquantised("Scale of Out")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        out = list(ctx.dim("X"))
        for axis in ctx.attr("fused_unsqueeze2_axes"):
            ctx.require(-len(out) - 1 <= axis <= len(out), f"fused_unsqueeze2_axes has {axis} for {len(out)} dims")
            out.insert(axis if axis >= 0 else axis + len(out) + 1, 1)
        ctx.set_dim("Out", out)
        if not ctx.attr("fused_unsqueeze2_axes"):
            ctx.share_lod("X", "Out")
