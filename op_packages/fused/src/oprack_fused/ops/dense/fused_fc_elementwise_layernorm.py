"""fused_fc_elementwise_layernorm: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

from oprack_fused.ops._shapes import dense_dims
from oprack_fused.ops.dense._layer_norm import normed_columns


class FusedFcElementwiseLayernorm(OpDef, type="fused_fc_elementwise_layernorm"):
    r"""$$Out = \operatorname{layer\_norm}(a(X W + Bias_0) + Y)$$ fc, elementwise_add and layer_norm."""

    X = Input("The first `x_num_col_dims` dims are rows.")
    W = Input("[K, N].")
    Y = Input("Rows of X, then N.")
    Bias0 = Input("[N].", dispensable=True)
    Scale = Input("A number for each column that is normalised.", dispensable=True)
    Bias1 = Input("A number for each column that is normalised.", dispensable=True)
    Out = Output("Shape of Y; LoD of X.")
    Mean = Output("The mean of each row.", dispensable=True)
    Variance = Output("The variance of each row.", dispensable=True)
    x_num_col_dims = Attr(1, "How many dims of X are rows.")
    activation_type = Attr("", "Type of the activation's op; empty: none.")
    epsilon = Attr(1e-5, "Keeps the divisor from 0.")
    begin_norm_axis = Attr(1, "Dims of Y from here on are normalised together.")

    def infer_shape(ctx: InferShapeContext) -> None:
        bias = tuple(ctx.dim("Bias0")) if ctx.has_input("Bias0") else None
        dims = dense_dims(ctx, tuple(ctx.dim("X")), tuple(ctx.dim("W")), bias, rows=ctx.attr("x_num_col_dims"))
        ctx.require_dims("Y", dims, why="the shape of X W")
        rows, columns = normed_columns(ctx, dims, ctx.attr("begin_norm_axis"))
        for slot in ("Scale", "Bias1"):
            ctx.require_dims(slot, (columns,), why=f"the columns of Y {list(dims)}")
        for slot in ("Mean", "Variance"):
            ctx.set_dim(slot, (rows,))
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
