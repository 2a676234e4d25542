"""sequence_expand_as: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


class SequenceExpandAs(OpDef, type="sequence_expand_as"):
    """Repeats row i of X as often as sequence i of Y (innermost level) is long, so that Out has Y's sequences."""

    X = Input("[number of sequences of Y, ...].")
    Y = Input("Its LoD tells how often; its data is not read.")
    Out = Output("[rows of Y, ...] with the LoD of Y.")
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.require_lod("Y")
        ctx.set_dim("Out", (ctx.dim("Y")[0], *ctx.dim("X")[1:]))
        ctx.share_lod("Y", "Out")

    def make_grad(fwd):
        return GradOp(
            "sequence_expand_as_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
        )


class SequenceExpandAsGrad(GradOpDef, type="sequence_expand_as_grad"):
    """Sums the gradients of all repeats of a row."""

    X = Input("Only its LoD and shape are read.")
    Y = Input("Only its LoD is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    no_need_buffer_vars = ("X", "Y")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")
