"""sequence_scatter: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_dim


class SequenceScatter(OpDef, type="sequence_scatter"):
    """Adds sequence i of Updates to row i of X, each update at the column that Ids names."""

    X = Input("[number of sequences, D].")
    Ids = Input("Columns [N, 1], int32 or int64, with LoD; a column may occur again.")
    Updates = Input("[N, 1] with the LoD of Ids.")
    Out = Output("Shape of X.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.require_lod("Ids")
        same_dim(ctx, "X", "Out")

    def make_grad(fwd):
        return GradOp(
            "sequence_scatter_grad",
            Ids=fwd.input("Ids"),
            Updates=fwd.input("Updates"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Updates_grad=fwd.input_grad("Updates"),
        )


class SequenceScatterGrad(GradOpDef, type="sequence_scatter_grad"):
    """X takes the gradient as it is, each update the element that it was added to."""

    Ids = Input("As in sequence_scatter.")
    Updates = Input("Only its LoD and shape are read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape of Out@GRAD.")
    Updates_grad = Output("Shape of Updates, without LoD.")
    no_need_buffer_vars = ("Updates",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_dim(ctx, "Out@GRAD", "X@GRAD")
        same_dim(ctx, "Updates", "Updates@GRAD")

    def infer_var_type(ctx):
        for slot in ("X@GRAD", "Updates@GRAD"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Out@GRAD"))
