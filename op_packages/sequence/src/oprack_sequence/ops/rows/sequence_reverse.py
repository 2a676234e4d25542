"""sequence_reverse: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import same_as


class SequenceReverse(OpDef, type="sequence_reverse"):
    r"""$$Y_{o_i + t} = X_{o_{i+1} - 1 - t}$$, o_i the first row of sequence i; it is its own gradient."""

    X = Input("[N, ...] with LoD.")
    Y = Output("Shape and LoD of X.")
    sbp = sequences(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Y")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("sequence_reverse", X=fwd.output_grad("Y"), Y=fwd.input_grad("X"), attrs=fwd.attrs)
