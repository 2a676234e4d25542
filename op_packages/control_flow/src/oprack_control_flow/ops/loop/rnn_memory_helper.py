"""rnn_memory_helper: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class RnnMemoryHelper(OpDef, type="rnn_memory_helper"):
    r"""$$Out = X$$: gives the new state of a StaticRNN a name of its own (programs of 1.x)."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of X.")
    dtype = Attr(5, "dtype of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class RnnMemoryHelperGrad(GradOpDef, of=RnnMemoryHelper, reads="X Out? Out@GRAD?", shape_of="X Out"):
    """X@GRAD is Out@GRAD, or 0 where no later step used the state."""

    expected_kernel_type = dtype_of("X")
