"""onednn_conv2d_chain: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, dtype_of, empty_grad
from oprack.op.families import conv_out
from oprack.types import AttrType
from oprack_nn.ops.post_ops import RESIDUAL, post_ops_attr, require_residual
from oprack_nn.ops.precision import data_type_attr, output_attr, set_output_dtype, with_output


class OneDNNConv2DChain(OpDef, type="onednn_conv2d_chain"):
    r"""$$Output = c_m(... c_1(Input))$$ with convolutions c, each with its bias and post-ops.

    What lies between them is computed for a few rows at a time, so that it need not leave the caches. Made by passes,
    for inference.
    """

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("Weights [K, C / groups, kh, kw] of each convolution.", duplicable=True)
    Bias = op.Input("[K] of each convolution that has one.", duplicable=True, dispensable=True)
    Residual = op.Input('What "residual" among the last post-ops adds; the shape of Output.', dispensable=True)
    Output = op.Output("Feature maps [N, K, H', W'].")
    strides = Attr([], "Steps along H and W of each convolution.", type=AttrType.INTS)
    paddings = Attr([], "Zeros above, below, left and right of each convolution.", type=AttrType.INTS)
    groups = Attr([], "Channel groups of each convolution.", type=AttrType.INTS).each(lambda n: n > 0, "> 0")
    biased = Attr([], "1 for each convolution that has a bias, 0 for others.", type=AttrType.INTS)
    biased = biased.each(lambda b: b in (0, 1), "0 or 1")
    post_op_counts = Attr([], "How many of post_ops follow each convolution.", type=AttrType.INTS)
    post_op_counts = post_op_counts.each(lambda n: n >= 0, ">= 0")
    post_ops = post_ops_attr()
    mkldnn_data_type = data_type_attr()
    output_data_type = output_attr()
    versions = with_output("onednn_conv2d_chain")
    expected_kernel_type = dtype_of("Filter")
    infer_var_type = set_output_dtype
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, channels, *size = ctx.require_rank("Input", 4)
        strides, paddings, groups, biased = map(ctx.attr, ("strides", "paddings", "groups", "biased"))
        _require_counts(ctx)
        for i in range(len(groups)):
            ctx.require_dims("Filter", [-1, channels // groups[i] if channels > 0 else -1, -1, -1], i)
            channels, _, *window = ctx.dim("Filter", i)
            if biased[i]:
                ctx.require_dims("Bias", [channels], sum(biased[:i]))
            top, bottom, left, right = paddings[4 * i : 4 * i + 4]
            pads = ((top, bottom), (left, right))
            size = [conv_out(*s, 1) for s in zip(size, window, pads, strides[2 * i : 2 * i + 2], strict=True)]
            if any(o != -1 and o <= 0 for o in size):
                ctx.require(False, f"the kernel {window} of convolution {i} is larger than its padded input")
        ctx.require_dims("Residual", [n, channels, *size])
        ctx.set_dim("Output", (n, channels, *size))


def _require_counts(ctx: InferShapeContext) -> None:
    """Require attributes that say as much as there are convolutions, and a residual behind the last one alone."""
    count, post_ops = ctx.input_count("Filter"), ctx.attr("post_ops")
    sizes = [len(ctx.attr(name)) for name in ("strides", "paddings", "groups")]
    if sizes != [2 * count, 4 * count, count]:
        expected = f"2, 4 and 1 numbers for each of {count} convolutions"
        ctx.require(False, f"strides, paddings and groups have {sizes} numbers; expected {expected}")
    biased, counts, biases = ctx.attr("biased"), ctx.attr("post_op_counts"), ctx.input_count("Bias")
    if len(biased) != count or len(counts) != count or sum(biased) != biases or sum(counts) != len(post_ops):
        ctx.require(
            False,
            f"biased and post_op_counts must have a number for each of {count} convolutions, and add up to the "
            f"{biases} biases and {len(post_ops)} post_ops; got {biased} and {counts}",
        )
    require_residual(ctx)
    early = RESIDUAL in post_ops[: sum(counts[:-1])]
    ctx.require(not early, f"a residual follows the last of {count} convolutions alone; got one before")
