"""dgc_clip_by_norm: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class DgcClipByNorm(OpDef, type="dgc_clip_by_norm"):
    r"""$$Out = X \cdot \min(1, max\_norm / \|X\|_2)$$ from step rampup_begin_step on, before it $$Out = X$$

    The clip of a gradient that is sent compressed (deep gradient compression, Lin et al., 2018). Steps count as whole
    numbers; with a negative rampup_begin_step nothing is clipped.
    """

    current_step = Input("[1], steps so far.")
    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    rampup_begin_step = Attr(-1.0, "The first step that is clipped.")
    max_norm = Attr(REQUIRED, "Greatest Euclidean norm of Out.", type=AttrType.FLOAT).greater_than(0)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
