"""sequence_reshape: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output
from oprack.types import AttrType

from oprack_sequence.ops._infer import same_as


class SequenceReshape(OpDef, type="sequence_reshape"):
    """Gives every sequence rows of `new_dim` elements, keeping its elements and their order."""

    X = Input("[N, D] with LoD; length times D of each sequence is a multiple of new_dim.")
    Out = Output("[N D / new_dim, new_dim] with LoD.")
    new_dim = Attr(REQUIRED, "Elements of a row of Out.", type=AttrType.INT).at_least(1)

    def infer_shape(ctx):
        ctx.require_lod("X")
        rows, width = ctx.require_rank("X", 2)
        new_dim = ctx.attr("new_dim")
        ctx.set_dim("Out", (-1 if rows < 0 or width < 0 else rows * width // new_dim, new_dim))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))

    def make_grad(fwd):
        return GradOp(
            "sequence_reshape_grad",
            X=fwd.input("X"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class SequenceReshapeGrad(GradOpDef, type="sequence_reshape_grad"):
    """The gradient in the shape of X."""

    X = Input("Its shape and LoD are read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    new_dim = Attr(REQUIRED, "As in sequence_reshape.", type=AttrType.INT)

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")
