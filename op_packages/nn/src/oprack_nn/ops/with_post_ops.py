"""Convolutions and products with what follows them: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, dtype_of, empty_grad
from oprack.op.families import conv_out, resolve_pads
from oprack.types import AttrType

from oprack_nn.ops.post_ops import post_ops_attr, require_residual
from oprack_nn.ops.precision import data_type_attr, output_attr, set_output_dtype

WINDOW = ("strides", "paddings", "dilations", "groups", "padding_algorithm")
"""The attributes that say where a convolution's windows lie, as those of conv2d."""


class Convolution(OpDef):
    """A convolution with what follows it; made by passes, for inference."""

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("Weights [K, C / groups, kh, kw].")
    Bias = op.Input("[K].", dispensable=True)
    Residual = op.Input('What the post-op "residual" adds; the shape of Output.', dispensable=True)
    Output = op.Output("Feature maps [N, K, H', W'].")
    strides = Attr([1, 1], "Step along H and W.").size(2)
    paddings = Attr([0, 0], "One number per dim, or before and after each dim.").size(2, 4)
    dilations = Attr([1, 1], "Distance of the taps along H and W.").size(2)
    groups = Attr(1, "Channel groups.").at_least(1)
    padding_algorithm = Attr("EXPLICIT", "As of conv2d.").in_set(("EXPLICIT", "SAME", "VALID"))
    post_ops = post_ops_attr()
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, *spatial = ctx.require_rank("Input", 4)
        k, c_group, *ksize = ctx.require_rank("Filter", 4)
        ctx.require(
            c < 0 or c == c_group * ctx.attr("groups"),
            f"Input has {c} channels, but Filter takes {c_group} x groups {ctx.attr('groups')}",
        )
        algorithm, strides = ctx.attr("padding_algorithm"), ctx.attr("strides")
        dilations = [1, 1] if algorithm == "SAME" else ctx.attr("dilations")
        pads = resolve_pads(algorithm, ctx.attr("paddings"), spatial, ksize, strides)
        out = [conv_out(*s) for s in zip(spatial, ksize, pads, strides, dilations, strict=True)]
        ctx.require(all(o == -1 or o > 0 for o in out), f"the kernel {ksize} is larger than the padded Input")
        ctx.require_dims("Bias", [k])
        require_residual(ctx)
        ctx.require_dims("Residual", [n, k, *out])
        ctx.set_dim("Output", (n, k, *out))


class Conv2DPostOps(Convolution, type="conv2d_post_ops"):
    r"""$$Output = p_n(... p_1(conv2d(Input, Filter) + Bias))$$ with the post-ops p; made by passes, for inference."""

    mkldnn_data_type = data_type_attr()
    output_data_type = output_attr()
    expected_kernel_type = dtype_of("Filter")
    infer_var_type = set_output_dtype


class Conv2DTransposePostOps(OpDef, type="conv2d_transpose_post_ops"):
    r"""$$Output = p_n(... p_1(conv2d\_transpose(Input, Filter) + Bias))$$ with the post-ops p; made by passes."""

    Input = op.Input("Images [N, C, H, W].")
    Filter = op.Input("Weights [C, K / groups, kh, kw].")
    Bias = op.Input("[K].", dispensable=True)
    Output = op.Output("Feature maps [N, K, H', W'].")
    strides = Attr([1, 1], "Distance of neighbours of Input in Output.").size(2)
    paddings = Attr([0, 0], "What is cut off: one number per dim, or before and after each dim.").size(2, 4)
    dilations = Attr([1, 1], "Distance of the taps along H and W.").size(2)
    groups = Attr(1, "Channel groups.").at_least(1)
    padding_algorithm = Attr("EXPLICIT", "As of conv2d_transpose.").in_set(("EXPLICIT", "SAME", "VALID"))
    output_padding = Attr([], "Rows and columns added at the end.", type=AttrType.INTS).size(0, 2)
    post_ops = post_ops_attr(residual=False)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, *spatial = ctx.require_rank("Input", 4)
        inputs, outputs, *ksize = ctx.require_rank("Filter", 4)
        ctx.require(c < 0 or c == inputs, f"Input has {c} channels, but Filter takes {inputs}")
        algorithm, strides = ctx.attr("padding_algorithm"), ctx.attr("strides")
        dilations = [1, 1] if algorithm == "SAME" else ctx.attr("dilations")
        pads = resolve_pads(algorithm, ctx.attr("paddings"), spatial, ksize, strides)
        more = ctx.attr("output_padding") or [0, 0]
        sizes = zip(spatial, ksize, pads, strides, dilations, more, strict=True)
        out = [-1 if s < 0 else (s - 1) * t - a - b + d * (k - 1) + 1 + e for s, k, (a, b), t, d, e in sizes]
        ctx.require_dims("Bias", [outputs * ctx.attr("groups")])
        ctx.set_dim("Output", (n, outputs * ctx.attr("groups"), *out))


class Product(OpDef):
    """A product with a weight and what follows it; made by passes, for inference."""

    X = op.Input("[*, K]; its first x_num_col_dims dims are rows.")
    Y = op.Input("Weights [K, N].")
    Bias = op.Input("[N].", dispensable=True)
    Residual = op.Input('What the post-op "residual" adds; the shape of Out.', dispensable=True)
    Out = op.Output("[*, N], LoD of X.")
    x_num_col_dims = Attr(-1, "How many dims of X are rows; -1 = all but the last.")
    trans_x = Attr(False, "The last two dims of X are swapped first.")
    post_ops = post_ops_attr()
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        x = list(ctx.dim("X"))
        rows, width = ctx.attr("x_num_col_dims"), ctx.require_rank("Y", 2)
        ctx.require(len(x) > 1, f"X {x} is no matrix")
        if ctx.attr("trans_x"):
            x[-2:] = x[:-3:-1]
        ctx.require_dims("Bias", width[1:])
        require_residual(ctx)
        ctx.set_dim("Out", (*x[: rows if rows > 0 else len(x) - 1], width[1]))
        ctx.share_lod("X", "Out")


class MatmulPostOps(Product, type="matmul_post_ops"):
    r"""$$Out = p_n(... p_1(X Y + Bias))$$ with the post-ops p; made by passes, for inference."""

    mkldnn_data_type = data_type_attr()
