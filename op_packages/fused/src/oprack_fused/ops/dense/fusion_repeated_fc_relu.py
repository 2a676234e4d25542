"""fusion_repeated_fc_relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output

from oprack_fused.ops._shapes import dense_dims


class FusionRepeatedFcRelu(OpDef, type="fusion_repeated_fc_relu"):
    r"""$$x_0 = X,\quad x_{i+1} = \max(0, x_i W_i + Bias_i),\quad Out = x_n$$"""

    X = Input("[M, K].")
    W = Input("Matrices, each with as many rows as the one before has columns.", duplicable=True)
    Bias = Input("A number for each column of each matrix.", duplicable=True)
    ReluOut = Output("$x_1$ to $x_{n-1}$.", duplicable=True, intermediate=True)
    Out = Output("[M, columns of the last matrix], LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = ctx.input_count("W")
        ctx.require(
            count == ctx.input_count("Bias") and count > 0,
            f"{count} weights and {ctx.input_count('Bias')} biases are given; expected as many, and one at least",
        )
        dims = tuple(ctx.require_rank("X", 2))
        for i in range(count):
            dims = dense_dims(ctx, dims, tuple(ctx.dim("W", i)), tuple(ctx.dim("Bias", i)))
            if i < count - 1:
                ctx.set_dim("ReluOut", dims, i)
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
