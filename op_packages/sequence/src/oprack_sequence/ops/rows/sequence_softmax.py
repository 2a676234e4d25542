"""sequence_softmax: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import same_as


class SequenceSoftmax(OpDef, type="sequence_softmax"):
    r"""Softmax over the rows of each sequence: $$Out_i = \frac{e^{X_i}}{\sum_{j \in seq(i)} e^{X_j}}$$"""

    X = Input("[N, 1] or [N] with LoD.")
    Out = Output("Shape and LoD of X.")
    use_cudnn = Attr(False, "Chooses a kernel library elsewhere.", extra=True)
    data_format = Attr("AnyLayout", "Has no effect.", extra=True)
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Out")


class SequenceSoftmaxGrad(GradOpDef, of=SequenceSoftmax, reads="Out", shape_of="X"):
    r"""$$\bar X_i = Out_i (\bar{Out}_i - \sum_{j \in seq(i)} Out_j \bar{Out}_j)$$"""
