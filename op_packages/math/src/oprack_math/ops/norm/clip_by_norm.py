"""clip_by_norm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class ClipByNorm(OpDef, type="clip_by_norm"):
    r"""$$Out = X \cdot \min(1, max\_norm / \|X\|_2)$$ X may be SelectedRows."""

    X = Input("Tensor or SelectedRows of any shape.")
    Out = Output("Shape and LoD of X.")
    max_norm = Attr(REQUIRED, "Greatest Euclidean norm of Out.", type=AttrType.FLOAT).greater_than(0)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")
