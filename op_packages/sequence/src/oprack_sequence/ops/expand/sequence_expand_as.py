"""sequence_expand_as: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences


class SequenceExpandAs(OpDef, type="sequence_expand_as"):
    r"""$$Out_r = X_{i}$$ for each row r of sequence i of Y (innermost level), so that Out has Y's sequences."""

    X = Input("[number of sequences of Y, ...].")
    Y = Input("Its LoD tells how often; its data is not read.")
    Out = Output("[rows of Y, ...] with the LoD of Y.")
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Y"), ("Out",), ("X",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Y")
        ctx.set_dim("Out", (ctx.dim("Y")[0], *ctx.dim("X")[1:]))
        ctx.share_lod("Y", "Out")


class SequenceExpandAsGrad(GradOpDef, of=SequenceExpandAs, shape_of="X Y", grads_of="X"):
    """Sums the gradients of all repeats of a row."""
