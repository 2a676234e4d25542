"""onednn_pointwise_conv2d and onednn_squeeze_excite: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import InferShapeContext, OpDef, dtype_of, empty_grad
from oprack_nn.ops.post_ops import post_ops_attr, require_residual
from oprack_nn.ops.precision import data_type_attr, output_attr, set_output_dtype, with_output


class OneDNNPointwiseConv2D(OpDef, type="onednn_pointwise_conv2d"):
    r"""$$Output = p_n(... p_1((conv2d(InputScale \cdot Input, Filter) + Bias) \cdot OutputScale))$$, kernel 1x1.

    p are the post-ops. Scales are one number per image and channel, as of squeeze and excitation. Made by passes, for
    inference.
    """

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("Weights [K, C, 1, 1].")
    Bias = op.Input("[K].", dispensable=True)
    InputScale = op.Input("[N, C, 1, 1].", dispensable=True)
    OutputScale = op.Input("[N, K, 1, 1].", dispensable=True)
    Residual = op.Input('What the post-op "residual" adds; the shape of Output.', dispensable=True)
    Output = op.Output("Feature maps [N, K, H, W].")
    post_ops = post_ops_attr()
    mkldnn_data_type = data_type_attr()
    output_data_type = output_attr()
    versions = with_output("onednn_pointwise_conv2d")
    expected_kernel_type = dtype_of("Filter")
    infer_var_type = set_output_dtype
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, h, w = ctx.require_rank("Input", 4)
        k, inputs, *window = ctx.require_rank("Filter", 4)
        ctx.require(
            window == [1, 1] and (c < 0 or c == inputs),
            f"Filter [K, C, 1, 1] fits Input with {c} channels; got {[k, inputs, *window]}",
        )
        ctx.require_dims("Bias", [k])
        ctx.require_dims("InputScale", [-1, c, 1, 1])
        ctx.require_dims("OutputScale", [-1, k, 1, 1])
        require_residual(ctx)
        ctx.require_dims("Residual", [n, k, h, w])
        ctx.set_dim("Output", (n, k, h, w))


class OneDNNSqueezeExcite(OpDef, type="onednn_squeeze_excite"):
    r"""$$Out = q(conv2d(p(conv2d(mean_{H, W}(X), Reduce) + ReduceBias), Expand) + ExpandBias)$$.

    p and q are the post-ops. The scale of squeeze and excitation. Made by passes, for inference.
    """

    X = op.Input("Images [N, C, H, W].")
    Reduce = op.Input("Weights [R, C, 1, 1].")
    ReduceBias = op.Input("[R].", dispensable=True)
    Expand = op.Input("Weights [K, R, 1, 1].")
    ExpandBias = op.Input("[K].", dispensable=True)
    Out = op.Output("[N, K, 1, 1].")
    reduce_post_ops = post_ops_attr(residual=False)
    expand_post_ops = post_ops_attr(residual=False)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, *_ = ctx.require_rank("X", 4)
        r, inputs, *one = ctx.require_rank("Reduce", 4)
        k, reduced, *two = ctx.require_rank("Expand", 4)
        ctx.require(
            one == [1, 1] == two and reduced == r and (c < 0 or c == inputs),
            f"Reduce [R, C, 1, 1] and Expand [K, R, 1, 1] fit X with {c} channels; "
            f"got {[r, inputs, *one]} and {[k, reduced, *two]}",
        )
        ctx.require_dims("ReduceBias", [r])
        ctx.require_dims("ExpandBias", [k])
        ctx.set_dim("Out", (n, k, 1, 1))
