"""sequence_slice: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences


class SequenceSlice(OpDef, type="sequence_slice"):
    r"""$$Out^{(i)}_t = X^{(i)}_{Offset_i + t}, \quad 0 \le t < Length_i$$"""

    X = Input("[N, ...] with LoD.")
    Offset = Input("Ids [number of sequences, 1].")
    Length = Input("Ids [number of sequences, 1]; Offset + Length stays within the sequence.")
    Out = Output("[sum of Length, ...] with LoD.")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Offset", "Length"), ("Out",), ("Offset", "Length"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceSliceGrad(GradOpDef, of=SequenceSlice, reads="Offset Length", shape_of="X", grads_of="X"):
    """Puts the rows back at their places; the others get zero."""
