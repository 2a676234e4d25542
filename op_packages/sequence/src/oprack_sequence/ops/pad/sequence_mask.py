"""sequence_mask: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class SequenceMask(OpDef, type="sequence_mask"):
    """$$Y_{..., j} = j < X_{...}$$ for j from 0 to maxlen - 1."""

    X = Input("Lengths, of any shape.")
    MaxLenTensor = Input("One-element tensor that overrides `maxlen`.", dispensable=True)
    Y = Output("[shape of X, maxlen] of out_dtype; no LoD.")
    maxlen = Attr(-1, "Size of the last dim; -1 is the largest element of X.").check(
        lambda v: v > 0 or v == -1, "-1 or a value of at least 1"
    )
    out_dtype = Attr(REQUIRED, "dtype of Y, as a wire number.", type=AttrType.INT)
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        maxlen = ctx.attr("maxlen")
        if ctx.has_input("MaxLenTensor"):
            value = ctx.scalar("MaxLenTensor")
            maxlen = -1 if value is None else int(value)
            ctx.require(value is None or maxlen > 0, f"MaxLenTensor holds {maxlen}; expected at least 1")
        elif maxlen < 0:
            lengths = ctx.value("X")
            maxlen = -1 if lengths is None else max(int(lengths.max()), 0) if lengths.size else 0
        ctx.set_dim("Y", (*ctx.dim("X"), maxlen))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Y", ctx.attr("out_dtype"))
