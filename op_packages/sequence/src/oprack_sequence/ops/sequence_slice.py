"""sequence_slice: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


class SequenceSlice(OpDef, type="sequence_slice"):
    """Length_i rows of sequence i, from its row Offset_i on."""

    X = Input("[N, ...] with LoD.")
    Offset = Input("Ids [number of sequences, 1].")
    Length = Input("Ids [number of sequences, 1]; Offset + Length stays within the sequence.")
    Out = Output("[sum of Length, ...] with LoD.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.require_lod("X")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))

    def make_grad(fwd):
        return GradOp(
            "sequence_slice_grad",
            X=fwd.input("X"),
            Offset=fwd.input("Offset"),
            Length=fwd.input("Length"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
        )


class SequenceSliceGrad(GradOpDef, type="sequence_slice_grad"):
    """Puts the rows back at their places; the others get zero."""

    X = Input("Only its LoD and shape are read.")
    Offset = Input("As in sequence_slice.")
    Length = Input("As in sequence_slice.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        same_as(ctx, "X", "X@GRAD")
