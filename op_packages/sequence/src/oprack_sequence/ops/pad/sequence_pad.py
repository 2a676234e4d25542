"""sequence_pad: all of the op but its kernels."""

from __future__ import annotations

import itertools

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class SequencePad(OpDef, type="sequence_pad"):
    r"""$$Out_{i,t} = X_{o_i + t}$$ for t < Length_i, else PadValue, where o_i is the first row of sequence i."""

    X = Input("[N, ...] of rank 2 or more, with LoD.")
    PadValue = Input("One element, or one for each element of a row of X.")
    Out = Output("[number of sequences, padded length, ...]; no LoD.")
    Length = Output("int64 [number of sequences].")
    padded_length = Attr(-1, "Length to pad to; -1 is that of the longest sequence.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dim = ctx.dim("X")
        ctx.require(len(dim) >= 2, f"X has shape {list(dim)}; expected rank 2 or more: reshape it to [N, 1]")
        count, length, lod = -1, ctx.attr("padded_length"), ctx.lod("X")
        if lod:
            count = len(lod[-1]) - 1
            longest = max((b - a for a, b in itertools.pairwise(lod[-1])), default=0)
            ctx.require(
                length == -1 or length >= longest,
                f"attribute padded_length is {length}, but the longest sequence has {longest} rows; expected at least "
                "as many, or -1",
            )
            length = longest if length == -1 else length
        ctx.set_dim("Out", (count, length, *dim[1:]))
        ctx.set_dim("Length", (count,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Length", VarType.INT64)


class SequencePadGrad(GradOpDef, of=SequencePad, reads="X Out@GRAD", shape_of="X", grads_of="X"):
    """Takes the rows out of the padded gradient."""
