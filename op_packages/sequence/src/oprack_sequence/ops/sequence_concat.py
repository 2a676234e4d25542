"""sequence_concat: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class SequenceConcat(OpDef, type="sequence_concat"):
    """Sequence i of Out is sequence i of every input, one after the other."""

    X = Input("Tensors [N_k, ...] with LoD of the same number of sequences.", duplicable=True)
    Out = Output("[sum of N_k, ...]; outer LoD levels are those of the first input.")

    def infer_shape(ctx):
        for i in range(ctx.input_count("X")):
            ctx.require_lod("X", i=i)
        dims = ctx.dims("X")
        rows = [d[0] for d in dims]
        ctx.set_dim("Out", (-1 if min(rows) < 0 else sum(rows), *dims[0][1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))

    def make_grad(fwd):
        return GradOp(
            "sequence_concat_grad", X=fwd.input("X"), Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X")
        )


class SequenceConcatGrad(GradOpDef, type="sequence_concat_grad"):
    """Each input takes back its own rows."""

    X = Input("Only their LoD and shapes are read.", duplicable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of each input.", duplicable=True)
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        for i in range(ctx.output_count("X@GRAD")):
            ctx.set_dim("X@GRAD", ctx.dim("X", i), i)
            ctx.share_lod("X", "X@GRAD", i, i)
