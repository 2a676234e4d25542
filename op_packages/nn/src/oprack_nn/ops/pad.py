"""Definitions of padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack import op
from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import Pads
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import is_channel_last, join_dims, layout_attr, split_dims


# What pad2d and pad3d share: padding the spatial dims in one of several modes.
def pairs_2d(paddings: Sequence[int]) -> Pads:
    """(before, after) of H and W from [top, bottom, left, right]."""
    return [(paddings[0], paddings[1]), (paddings[2], paddings[3])]


def pairs_3d(paddings: Sequence[int]) -> Pads:
    """(before, after) of D, H and W from [left, right, top, bottom, front, back]."""
    return [(paddings[4], paddings[5]), (paddings[2], paddings[3]), (paddings[0], paddings[1])]


def infer_padded(ctx: InferShapeContext, source: str, target: str, pairs: Callable[..., Any], rank: int) -> None:
    """Dims of `target` from those of `source`; the tensor Paddings goes before the attribute."""
    dims = ctx.require_rank(source, rank + 2)
    layout, mode = ctx.attr("data_format"), ctx.attr("mode")
    n, c, spatial = split_dims(dims, layout)
    value = ctx.value("Paddings") if ctx.has_input("Paddings") else None
    if ctx.has_input("Paddings") and value is None:
        ctx.set_dim(target, join_dims(n, c, (-1,) * rank, layout))
        ctx.share_lod(source, target)
        return
    paddings = ctx.attr("paddings") if value is None else [int(p) for p in value.reshape(-1)]
    ctx.require(len(paddings) == 2 * rank, f"paddings is {list(paddings)}; expected {2 * rank} numbers")
    for x, pair in zip(spatial, pairs(paddings), strict=True):
        limit = {"reflect": x - 1, "circular": x}.get(mode)
        ctx.require(
            min(pair) >= 0 and (limit is None or x < 0 or max(pair) <= limit),
            f"paddings {list(paddings)} with mode {mode} on {source} {list(dims)}; expected 0 or more, and at most the "
            "dim less 1 for reflect, the dim for circular",
        )
    out = tuple(x if x < 0 else x + a + b for x, (a, b) in zip(spatial, pairs(paddings), strict=True))
    ctx.set_dim(target, join_dims(n, c, out, layout))
    ctx.share_lod(source, target)


def first_spatial_axis(layout: str) -> int:
    """Position of the first spatial dim."""
    return 1 if is_channel_last(layout) else 2


class Pad(OpDef, type="pad"):
    r"""$$Out_{i_0, i_1, \ldots} = X_{i_0 - paddings_0, i_1 - paddings_2, \ldots}$$ inside of X, else pad_value.

    paddings[2i] elements come before and paddings[2i + 1] after dim i.
    """

    X = op.Input("Any shape.")
    Out = op.Output("Shape of X plus the paddings.")
    paddings = Attr(REQUIRED, "Numbers before and after each dim: [b0, a0, b1, a1, ...].", type=AttrType.INTS).each(
        lambda p: p >= 0, "0 or more"
    )
    pad_value = Attr(0.0, "Value of the new elements.", support_tensor=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, p = ctx.dim("X"), ctx.attr("paddings")
        ctx.require(
            len(p) == 2 * len(dims),
            f"paddings has {len(p)} numbers; expected {2 * len(dims)}, two per dim of X {list(dims)}",
        )
        out = tuple(x if x < 0 else x + p[2 * i] + p[2 * i + 1] for i, x in enumerate(dims))
        ctx.set_dim("Out", out)
        if out[:1] == dims[:1]:
            ctx.share_lod("X", "Out")


class PadGrad(GradOpDef, of=Pad):
    """X@GRAD is the part of Out@GRAD that X was copied to."""

    def infer_shape(ctx: InferShapeContext) -> None:
        p = ctx.attr("paddings")
        dims = ctx.dim("Out@GRAD")
        ctx.set_dim("X@GRAD", tuple(x if x < 0 else x - p[2 * i] - p[2 * i + 1] for i, x in enumerate(dims)))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "pad",
            X=fwd.output_grad("X@GRAD"),
            Out=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs | {"pad_value": 0.0},
        )


class Pad2D(OpDef, type="pad2d"):
    r"""$$Out_{n,c,y,x} = X_{n,c,\sigma_H(y - top),\sigma_W(x - left)}$$

    With constant, sigma(i) = i and what lies outside is pad_value; reflect:
    $$\sigma_n(i) = \min(|i|, 2 (n - 1) - |i|)$$; edge: $$\sigma_n(i) = \min(\max(i, 0), n - 1)$$. An op of Paddle 1.x,
    pad3d in 2.x.
    """

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Paddings = op.Input("[4], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with H and W padded.")
    paddings = Attr(REQUIRED, "[top, bottom, left, right].", type=AttrType.INTS)
    pad_value = Attr(0.0, "Value of the new elements in mode constant.")
    mode = Attr("constant", "constant; reflect: mirror without the edge; edge: repeat the edge.").in_set(
        ("constant", "reflect", "edge")
    )
    data_format = layout_attr("NCHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "X", "Out", pairs_2d, 2)


class Pad2DGrad(GradOpDef, of=Pad2D, reads="Paddings", shape_of="X", grads_of="X", lod=False):
    """X@GRAD sums Out@GRAD over the copies of each element."""


class Pad3D(OpDef, type="pad3d"):
    r"""$$Out_{n,c,z,y,x} = X_{n,c,\sigma_D(z - front),\sigma_H(y - top),\sigma_W(x - left)}$$

    With constant, sigma(i) = i and what lies outside is `value`; reflect: $$\sigma_n(i) = \min(|i|, 2 (n - 1) - |i|)$$;
    replicate: $$\sigma_n(i) = \min(\max(i, 0), n - 1)$$; circular: $$\sigma_n(i) = i \bmod n$$. Images and sequences
    come with D or D and H of 1.
    """

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Paddings = op.Input("[6], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with D, H and W padded.")
    paddings = Attr(REQUIRED, "[left, right, top, bottom, front, back].", type=AttrType.INTS)
    mode = Attr("constant", "constant; reflect: mirror without the edge; replicate: repeat the edge; circular.").in_set(
        ("constant", "reflect", "replicate", "circular")
    )
    value = Attr(0.0, "Value of the new elements in mode constant.")
    data_format = layout_attr("NCDHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "X", "Out", pairs_3d, 3)


class Pad3DGrad(GradOpDef, of=Pad3D, reads="Paddings", shape_of="X", grads_of="X"):
    """X@GRAD sums Out@GRAD over the copies of each element."""


class Pad3DDoubleGrad(
    GradOpDef,
    of=Pad3DGrad,
    type="pad3d_double_grad",
    reads="Paddings",
    grads_of="Out@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    """pad3d again, with zeros in mode constant."""

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "grad_x@GRAD", "grad_out@GRAD", pairs_3d, 3)


# pad_constant_like (Paddle 1.x) and its gradient: all of the ops but their kernels.
class PadConstantLike(OpDef, type="pad_constant_like"):
    r"""$$Out_i = Y_i$$ for the places i of Y, else pad_value: Y in the corner of a tensor of the shape of X."""

    X = Input("Gives the shape; its values are not read.")
    Y = Input("Rank of X, and no dim greater.")
    Out = Output("Shape of X, type of Y.")
    pad_value = Attr(0.0, "Value of the new elements.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Y")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        ctx.require(
            len(x) == len(y) and all(a < 0 or b <= a for a, b in zip(x, y, strict=True)),
            f"X has shape {list(x)} and Y {list(y)}; expected equal ranks, and no dim of Y greater than that of X",
        )
        ctx.set_dim("Out", x)
        ctx.share_lod("X", "Out")


class PadConstantLikeGrad(GradOpDef, of=PadConstantLike, shape_of="Y", grads_of="Y"):
    """Y@GRAD is the part of Out@GRAD that Y was copied to."""
