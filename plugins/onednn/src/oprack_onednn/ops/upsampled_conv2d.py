"""onednn_upsampled_conv2d: all of the op but its kernels."""

from __future__ import annotations

from collections.abc import Sequence

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad
from oprack.types import AttrType
from oprack_nn.ops.post_ops import post_ops_attr
from oprack_nn.ops.precision import data_type_attr, with_data_type


def _which(slot: str) -> Attr:
    doc = f"Per X: the position in {slot} of the one that belongs to it, -1 = none."
    return Attr([], doc, type=AttrType.INTS).each(lambda i: i >= -1, ">= -1")


class OneDNNUpsampledConv2D(OpDef, type="onednn_upsampled_conv2d"):
    r"""$$Output = p_n(... p_1(\sum_i conv2d(up_{f_i}(s_i \cdot (P_i X_i + b_i)), W_i) + Bias))$$ with the post-ops p.

    up_f repeats each pixel f times along H and W (nearest-neighbour interpolation), P is a 1x1 convolution, and conv2d
    has stride 1, and 3x3 taps and padding 1 or 1x1 taps. A sum or concatenation of maps of several resolutions goes
    through one convolution so. Made by passes, for inference.
    """

    X = op.Input("Images [N, c_i, H / f_i, W / f_i].", duplicable=True)
    Filter = op.Input("Weights [K, C_i, 3, 3] or [K, C_i, 1, 1], one per X.", duplicable=True)
    Bias = op.Input("[K].", dispensable=True)
    Project = op.Input("Weights [C_i, c_i, 1, 1] of 1x1 convolutions.", duplicable=True, dispensable=True)
    Shift = op.Input("Biases [C_i] of 1x1 convolutions.", duplicable=True, dispensable=True)
    Scale = op.Input("[N, C_i, 1, 1].", duplicable=True, dispensable=True)
    Output = op.Output("Feature maps [N, K, H, W].")
    factors = Attr([], "f_i.", type=AttrType.INTS).each(lambda f: f >= 1, ">= 1")
    projects = _which("Project")
    shifts = _which("Shift")
    scales = _which("Scale")
    post_ops = post_ops_attr(residual=False)
    mkldnn_data_type = data_type_attr()
    versions = with_data_type("onednn_upsampled_conv2d")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        _require_counts(ctx)
        images, filters = ctx.dims("X"), ctx.dims("Filter")
        windows = {tuple(d[2:]) for d in filters}
        ctx.require(
            all(len(d) == 4 for d in images) and windows in ({(3, 3)}, {(1, 1)}),
            f"every X is [N, C, H, W] and every Filter [K, C, 3, 3], or every one [K, C, 1, 1]; "
            f"got {images} and {filters}",
        )
        n, h, w = _common_size(ctx, images)
        _require_parameters(ctx, images, filters)
        ctx.set_dim("Output", (n, filters[0][0], h, w))


def _require_counts(ctx: InferShapeContext) -> None:
    count, filters = ctx.input_count("X"), ctx.input_count("Filter")
    lists = [ctx.attr(name) for name in ("factors", "projects", "shifts", "scales")]
    ctx.require(
        count == filters and all(len(values) == count for values in lists),
        f"X, Filter and the attributes by X have one entry each; got {count}, {filters}, {lists}",
    )


def _common_size(ctx: InferShapeContext, images: Sequence[Sequence[int]]) -> tuple[int, int, int]:
    """N, H and W of the result, which all maps have once their pixels are repeated; -1 where no map says it."""
    factors = ctx.attr("factors")
    sizes = [
        tuple(-1 if d < 0 else d * f for d, f in zip((n, h, w), (1, factor, factor), strict=True))
        for (n, _, h, w), factor in zip(images, factors, strict=True)
    ]
    known = [{d for d in dims if d >= 0} for dims in zip(*sizes, strict=True)]
    ctx.require(
        all(len(found) < 2 for found in known),
        f"X {images} times factors {factors} differ in N, H or W",
    )
    n, h, w = (min(found, default=-1) for found in known)
    return n, h, w


def _require_parameters(
    ctx: InferShapeContext, images: Sequence[Sequence[int]], filters: Sequence[Sequence[int]]
) -> None:
    (outputs, _, *window), projects, shifts = filters[0], ctx.attr("projects"), ctx.attr("shifts")
    for i, ((_, inputs, *_), (_, channels, *_)) in enumerate(zip(images, filters, strict=True)):
        projected = projects[i] >= 0
        ctx.require_dims("Filter", [outputs, channels if projected else inputs, *window], i)
        if projected:
            ctx.require_dims("Project", [channels, inputs, 1, 1], projects[i])
        if shifts[i] >= 0:
            ctx.require_dims("Shift", [channels], shifts[i])
    ctx.require_dims("Bias", [outputs])
