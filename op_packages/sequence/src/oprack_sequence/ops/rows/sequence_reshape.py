"""sequence_reshape: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences
from oprack.types import AttrType


class SequenceReshape(OpDef, type="sequence_reshape"):
    r"""$$Out^{(i)}_{r,c} = x^{(i)}_{r D' + c}$$, x the elements of a sequence in their order and D' = new_dim."""

    X = Input("[N, D] with LoD; length times D of each sequence is a multiple of new_dim.")
    Out = Output("[N D / new_dim, new_dim] with LoD.")
    new_dim = Attr(REQUIRED, "Elements of a row of Out.", type=AttrType.INT).at_least(1)
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        rows, width = ctx.require_rank("X", 2)
        new_dim = ctx.attr("new_dim")
        ctx.set_dim("Out", (-1 if rows < 0 or width < 0 else rows * width // new_dim, new_dim))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceReshapeGrad(GradOpDef, of=SequenceReshape, reads="X"):
    """The gradient in the shape of X."""
