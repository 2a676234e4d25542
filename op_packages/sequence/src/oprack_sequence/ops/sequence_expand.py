"""sequence_expand: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


class SequenceExpand(OpDef, type="sequence_expand"):
    """Repeats sequence i of X as often as sequence i of a level of Y is long; of an X without LoD, row i.

    When that level of Y has no sequence at all, Out is X.
    """

    X = Input("[N, ...] with at most one LoD level.")
    Y = Input("Its LoD tells how often; its data is not read.")
    Out = Output("Repeated rows; one LoD level if X has one, else none.")
    ref_level = Attr(-1, "Level of Y's LoD to count by; -1 is the innermost.")
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.require_lod("Y")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", ctx.lod_level("X"))

    def make_grad(fwd):
        return GradOp(
            "sequence_expand_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class SequenceExpandGrad(GradOpDef, type="sequence_expand_grad"):
    """Sums the gradients of all repeats of a row."""

    X = Input("Only its LoD and shape are read.")
    Y = Input("Only its LoD is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    ref_level = Attr(-1, "As in sequence_expand.")
    no_need_buffer_vars = ("X", "Y")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")
