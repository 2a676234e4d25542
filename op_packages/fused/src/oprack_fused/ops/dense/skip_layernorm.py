"""skip_layernorm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.types import AttrType

from oprack_fused.ops.dense._layer_norm import normed_columns


class SkipLayernorm(OpDef, type="skip_layernorm"):
    r"""$$Out = \operatorname{layer\_norm}(X + Y)$$ elementwise_add and layer_norm."""

    X = Input("Tensor of rank 2 or more.")
    Y = Input("Shape of X.")
    Scale = Input("A number for each column.")
    Bias = Input("A number for each column.")
    Out = Output("Shape and LoD of X.")
    epsilon = Attr(REQUIRED, "Keeps the divisor from 0.", type=AttrType.FLOAT)
    begin_norm_axis = Attr(REQUIRED, "Dims from here on are normalised together.", type=AttrType.INT)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = tuple(ctx.dim("X"))
        ctx.same_dims("X", "Y")
        _, columns = normed_columns(ctx, dims, ctx.attr("begin_norm_axis"))
        for slot in ("Scale", "Bias"):
            ctx.require_dims(slot, (columns,), why=f"the columns of X {list(dims)}")
        like(ctx, [("Out", "X")])
