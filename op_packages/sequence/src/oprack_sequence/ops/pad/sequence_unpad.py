"""sequence_unpad: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class SequenceUnpad(OpDef, type="sequence_unpad"):
    r"""$$Out_{o_i + t} = X_{i,t}$$ for t < Length_i, o_i the sum of the lengths before: the inverse of
    sequence_pad.
    """

    X = Input("[B, T, ...].")
    Length = Input("int64 [B] or [B, 1], each from 0 to T.")
    Out = Output("[sum of Length, ...], at least [.., 1], with one LoD level.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dim = ctx.dim("X")
        ctx.require(len(dim) >= 2, f"X has shape {list(dim)}; expected [B, T, ...]")
        ctx.set_dim("Out", (-1, *(dim[2:] or (1,))))
        ctx.set_lod_level("Out", 1)


class SequenceUnpadGrad(GradOpDef, of=SequenceUnpad, shape_of="X", grads_of="X"):
    """Puts the rows back at their places; the padding gets zero."""
