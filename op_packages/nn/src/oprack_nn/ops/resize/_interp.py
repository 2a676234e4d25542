"""What the interpolation ops share: attributes, slots, the size of the output."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims

if TYPE_CHECKING:
    from oprack.kernel import Array


def _float32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def channel_order(data_layout: str) -> str:
    """NCHW or NHWC: whatever the rank, Paddle takes every layout but NCHW, even NCDHW, for channels last."""
    return "NCHW" if data_layout == "NCHW" else "NHWC"


def output_size(
    spatial: Sequence[int],
    attrs: Mapping[str, Any],
    size_tensor: Sequence[int] | None,
    scale: Sequence[float] | None,
    out_size: Sequence[int] | None,
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Spatial dims of the output, and the scale factors in effect (None: none).

    In order of precedence: SizeTensor, OutSize, Scale, the attribute scale, the attributes out_d, out_h, out_w. OutSize
    decides the size only: factors that come with it still decide where the samples lie. Unknown dims stay -1.
    """
    rank = len(spatial)
    out = tuple(attrs[n] for n in ("out_d", "out_h", "out_w")[-rank:])
    if size_tensor is not None:
        return tuple(size_tensor), None
    factors = scale
    if factors is None:
        given = attrs["scale"]
        factors = list(given) if isinstance(given, list | tuple) else [given]
    factors = list(factors) * rank if len(factors) == 1 else list(factors)
    used = tuple(factors) if len(factors) == rank and all(f > 0 for f in factors) else None
    if used is not None:
        # Paddle multiplies in float32, which decides what the product is truncated to
        out = tuple(-1 if x < 0 else int(_float32(x * _float32(f))) for x, f in zip(spatial, used, strict=True))
    return (tuple(out_size) if out_size is not None else out), used


def _numbers(value: Array | None) -> list[Any] | None:
    return None if value is None else [v.item() for v in value.reshape(-1)]


def _listed_sizes(ctx: InferShapeContext, dims: Sequence[int], count: int) -> tuple[int, ...] | None:
    """Spatial dims from a list of one-element tensors, -1 where they are not known; None when there is no such list."""
    sizes = [ctx.scalar("SizeTensor", i) for i in range(ctx.input_count("SizeTensor"))]
    if not sizes:
        return None
    ctx.require(
        len(sizes) == count,
        f"SizeTensor holds {len(sizes)} tensors; expected {count}, one per spatial dim of X {list(dims)}",
    )
    return (-1,) * count if any(s is None for s in sizes) else tuple(int(s) for s in sizes)


def _output_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Out, -1 where they are not known yet."""
    dims = ctx.require_rank("X", *_RANKS[ctx.op_type.split("_")[0]])
    layout = channel_order(ctx.attr("data_layout"))
    n, c, spatial = split_dims(dims, layout)
    size_tensor = _listed_sizes(ctx, dims, len(spatial))
    scale = _numbers(ctx.value("Scale")) if ctx.has_input("Scale") else None
    out_size = _numbers(ctx.value("OutSize")) if ctx.has_input("OutSize") else None
    if not ctx.is_runtime and out_size is None and (ctx.has_input("OutSize") or ctx.has_input("Scale")):
        out_size = (-1,) * len(spatial)
    out, _ = output_size(spatial, ctx.attrs, size_tensor, scale, out_size)
    ctx.require(
        len(out) == len(spatial) and (not ctx.is_runtime or all(o > 0 for o in out)),
        f"the output's size comes out as {list(out)}; expected {len(spatial)} positive numbers: give out_d/out_h/out_w,"
        " scale, OutSize, SizeTensor or Scale",
    )
    return join_dims(n, c, [o if o > 0 else -1 for o in out], layout)


def _infer_shape(ctx: InferShapeContext) -> None:
    ctx.set_dim("Out", _output_dims(ctx))


_RANKS = {"linear": (3,), "nearest": (4, 5), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,)}


_METHOD = "linear (bilinear, trilinear), nearest or bicubic."
_CORNERS = "Corner samples of input and output coincide."
_MODE = "Without align_corners: 0 aligns the edges, src = (dst + 0.5) ratio - 0.5; 1 takes src = dst ratio."


class InterpV2(OpDef):
    """Slots and rules of the *_interp_v2 ops."""

    X = op.Input("[N, C, *spatial], or [N, *spatial, C] with data_layout NHWC.")
    OutSize = op.Input("[number of spatial dims], int32: the output's size.", dispensable=True)
    SizeTensor = op.Input("The same as one-element tensors.", duplicable=True, dispensable=True)
    Scale = op.Input("One factor, or one per spatial dim.", dispensable=True)
    Out = op.Output("X at the output's size.")
    data_layout = layout_attr("NCHW")
    out_d = Attr(0, "Depth of the output.")
    out_h = Attr(0, "Height of the output.")
    out_w = Attr(0, "Width of the output.")
    scale = Attr([], "One factor, or one per spatial dim.", type=AttrType.FLOATS)
    interp_method = Attr("bilinear", _METHOD)
    align_corners = Attr(True, _CORNERS)
    align_mode = Attr(1, _MODE)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    infer_shape = _infer_shape


class InterpV1(OpDef):
    """Slots and rules of the ops without _v2."""

    X = op.Input("[N, C, *spatial], or [N, *spatial, C] with data_layout NHWC.")
    OutSize = op.Input("[number of spatial dims], int32: the output's size.", dispensable=True)
    SizeTensor = op.Input("The same as one-element tensors.", duplicable=True, dispensable=True)
    Scale = op.Input("One factor for all spatial dims.", dispensable=True)
    Out = op.Output("X at the output's size.")
    data_layout = layout_attr("NCHW")
    out_d = Attr(0, "Depth of the output.")
    out_h = Attr(0, "Height of the output.")
    out_w = Attr(0, "Width of the output.")
    scale = Attr(0.0, "Factor for all spatial dims.")
    interp_method = Attr("bilinear", _METHOD)
    align_corners = Attr(True, _CORNERS)
    align_mode = Attr(1, _MODE)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    infer_shape = _infer_shape


class InterpGrad(
    GradOpDef, reads="OutSize SizeTensor Scale", shape_of="X", grads_of="X", dims={"Out@GRAD": _output_dims}
):
    """The adjoint of the linear map from X to Out."""
