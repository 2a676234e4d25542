"""onednn_conv2d_transpose_pair: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import InferShapeContext, OpDef, empty_grad
from oprack_nn.ops.post_ops import post_ops_attr
from oprack_nn.ops.precision import data_type_attr, with_data_type


class OneDNNConv2DTransposePair(OpDef, type="onednn_conv2d_transpose_pair"):
    r"""$$Y = p(conv2d\_transpose(Input, Filter) + Bias),\ Output = q(conv2d\_transpose(Y, NextFilter) + NextBias)$$

    Both have strides as large as their windows, so that each pixel becomes a tile of its own; p and q are post-ops.
    Made by passes, for inference.
    """

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("Weights [C, K, kh, kw] of strides [kh, kw].")
    Bias = op.Input("[K].", dispensable=True)
    NextFilter = op.Input("Weights [K, L, lh, lw] of strides [lh, lw].")
    NextBias = op.Input("[L].", dispensable=True)
    Output = op.Output("Feature maps [N, L, H kh lh, W kw lw].")
    post_ops = post_ops_attr(residual=False)
    next_post_ops = post_ops_attr(residual=False)
    mkldnn_data_type = data_type_attr()
    versions = with_data_type("onednn_conv2d_transpose_pair")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, h, w = ctx.require_rank("Input", 4)
        inputs, k, *window = ctx.require_rank("Filter", 4)
        between, outputs, *next_window = ctx.require_rank("NextFilter", 4)
        ctx.require(
            (c < 0 or c == inputs) and k == between,
            f"Filter [C, K, kh, kw] and NextFilter [K, L, lh, lw] fit Input with {c} channels; "
            f"got {[inputs, k, *window]} and {[between, outputs, *next_window]}",
        )
        ctx.require_dims("Bias", [k])
        ctx.require_dims("NextBias", [outputs])
        size = [-1 if d < 0 else d * a * b for d, a, b in zip((h, w), window, next_window, strict=True)]
        ctx.set_dim("Output", (n, outputs, *size))
