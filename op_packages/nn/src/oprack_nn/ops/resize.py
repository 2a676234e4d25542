"""Definitions of resampling."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims

if TYPE_CHECKING:
    from oprack.kernel import Array


# What the interpolation ops share: attributes, slots, the size of the output.
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
    out_size: Sequence[int] | None = _numbers(ctx.value("OutSize")) if ctx.has_input("OutSize") else None
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


def _sizes(ctx: InferShapeContext, rank: int) -> tuple[int, ...]:
    """The spatial sizes of the output, -1 where they are not known yet."""
    if ctx.has_input("OutputShape"):
        ctx.require_dims("OutputShape", (rank + 2,))
        value = ctx.value("OutputShape")
        if value is None:
            return (-1,) * rank
        sizes = [int(v) for v in value]
    else:
        sizes = list(ctx.attr("output_shape"))
    ctx.require(
        len(sizes) == rank + 2 and all(s >= 0 or not ctx.is_runtime for s in sizes[2:]),
        f"the output's shape is given as {sizes}; expected {rank + 2} sizes, N, C and the {rank} spatial ones, by "
        "output_shape or OutputShape",
    )
    return tuple(sizes[2:])


def _affine_grid_output_dims(ctx: InferShapeContext) -> tuple[int, ...] | None:
    """Dims of Output; None where not even their number is known."""
    theta = ctx.require_rank("Theta", 3)
    ctx.require(
        theta[1:] in ((2, 3), (3, 4)) or -1 in theta[1:],
        f"Theta has shape {list(theta)}; expected [N, 2, 3] for images or [N, 3, 4] for volumes",
    )
    rank = _rank(ctx, theta)
    return None if rank is None else (theta[0], *_sizes(ctx, rank), rank)


def _affine_grid_read_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims that Output@GRAD must have."""
    return _affine_grid_output_dims(ctx) or ctx.dim("Output@GRAD")


def _rank(ctx: InferShapeContext, theta: tuple[int, ...]) -> int | None:
    """2 for images, 3 for volumes: Theta tells, or else how many sizes Output is asked to have, if that is known."""
    if max(theta[1:]) > 0:
        return theta[1] if theta[1] > 0 else theta[2] - 1
    count = ctx.dim("OutputShape")[0] if ctx.has_input("OutputShape") else len(ctx.attr("output_shape"))
    if count == -1:
        return None
    ctx.require(
        count in (4, 5),
        f"Theta has shape {list(theta)} (-1 = unknown) and the output {count} sizes; expected a known size in dim 1 or "
        "2 of Theta, or 4 or 5 sizes of the output",
    )
    return count - 2


class AffineGrid(OpDef, type="affine_grid"):
    r"""$$Output_{n,y,x} = Theta_n (p_x, p_y, 1)^T$$ with p the place of pixel (y, x) in [-1, 1]: $$p_x = \frac{2 x}{W -
    1} - 1$$ with align_corners, else $$p_x = \frac{2 x + 1}{W} - 1$$

    The points at which grid_sampler reads an image that an affine map moves. A dim of one pixel lies at 0.
    """

    Theta = op.Input("[N, 2, 3], or [N, 3, 4] for volumes.")
    OutputShape = op.Input(
        "[N, C, H, W] or [N, C, D, H, W] as a tensor, int32; wins over output_shape.", dispensable=True
    )
    Output = op.Output("[N, H, W, 2] or [N, D, H, W, 3]: x first.")
    output_shape = Attr([], "[N, C, H, W] or [N, C, D, H, W]; N and C are not used.", type=AttrType.INTS)
    align_corners = Attr(True, "-1 and 1 are the centres of the corner pixels, not their outer edges.")
    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("Theta")
    versions = OpVersion("affine_grid").checkpoint("New attribute align_corners.", ("new_attr", "align_corners", True))
    sbp = leading(("Theta",), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = _affine_grid_output_dims(ctx)
        if dims is not None:
            ctx.set_dim("Output", dims)


class AffineGridGrad(
    GradOpDef,
    of=AffineGrid,
    reads="Theta OutputShape",
    shape_of="Theta",
    grads_of="Theta",
    dims={"Output@GRAD": _affine_grid_read_dims},
):
    r"""$$Theta@GRAD_n = \sum_{y,x} Output@GRAD_{n,y,x} (p_x, p_y, 1)$$"""

    expected_kernel_type = dtype_of("Output@GRAD")


class BicubicInterp(InterpV1, type="bicubic_interp"):
    r"""$$Out_{y,x} = \sum_{i,j=-1}^{2} k(i - f_y) k(j - f_x) X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$,
    places cut to X.

    Cubic convolution along H and W (Keys, 1981): s = r (y + 0.5) - 0.5, or r y with align_corners, f its fraction, and
    $$k(t) = (a + 2)|t|^3 - (a + 3)|t|^2 + 1$$ up to 1, $$a|t|^3 - 5a|t|^2 + 8a|t| - 4a$$ up to 2, with a = -0.75.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BicubicInterpGrad(InterpGrad, of=BicubicInterp):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp."""


class BicubicInterpV2(InterpV2, type="bicubic_interp_v2"):
    r"""$$Out_{y,x} = \sum_{i,j=-1}^{2} k(i - f_y) k(j - f_x) X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$,
    places cut to X.

    Cubic convolution along H and W (Keys, 1981): s = r (y + 0.5) - 0.5, or r y with align_corners, f its fraction, and
    $$k(t) = (a + 2)|t|^3 - (a + 3)|t|^2 + 1$$ up to 1, $$a|t|^3 - 5a|t|^2 + 8a|t| - 4a$$ up to 2, with a = -0.75.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BicubicInterpV2Grad(InterpGrad, of=BicubicInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bicubic_interp_v2."""


class BilinearInterp(InterpV1, type="bilinear_interp"):
    r"""$$Out_{y,x} = \sum_{i,j \in \{0,1\}} |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor
    + j}$$

    Linear interpolation along H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from 0
    on, and f its fraction.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BilinearInterpGrad(InterpGrad, of=BilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp."""


class BilinearInterpV2(InterpV2, type="bilinear_interp_v2"):
    r"""$$Out_{y,x} = \sum_{i,j \in \{0,1\}} |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_y \rfloor + i, \lfloor s_x \rfloor
    + j}$$

    Linear interpolation along H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from 0
    on, and f its fraction.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class BilinearInterpV2Grad(InterpGrad, of=BilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in bilinear_interp_v2."""


class GridSampler(OpDef, type="grid_sampler"):
    r"""$$Output_{n,c,y,x} = X_{n,c}(Grid_{n,y,x})$$: X interpolated at points in [-1, 1], x first, then y (and z)."""

    X = op.Input("[N, C, H, W] or [N, C, D, H, W].")
    Grid = op.Input("[N, H', W', 2] or [N, D', H', W', 3].")
    Output = op.Output("[N, C, H', W'] or [N, C, D', H', W'].")
    mode = Attr("bilinear", "bilinear (also trilinear, for volumes) or nearest.").in_set(("bilinear", "nearest"))
    padding_mode = Attr("zeros", "What lies outside: zeros, border (the edge) or reflection.").in_set(
        ("zeros", "border", "reflection")
    )
    align_corners = Attr(True, "-1 and 1 are the centres of the corner pixels, not their outer edges.")
    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    versions = OpVersion("grid_sampler").checkpoint("New attribute mode.", ("new_attr", "mode", "bilinear"))
    sbp = leading(("X", "Grid"), ("Output",))

    def infer_shape(ctx: InferShapeContext) -> None:
        x = ctx.require_rank("X", 4, 5)
        grid = ctx.require_rank("Grid", len(x))
        ctx.require(
            grid[-1] in (-1, len(x) - 2) and (x[0] == grid[0] or -1 in (x[0], grid[0])),
            f"Grid has shape {list(grid)}; expected [{x[0]}, ..., {len(x) - 2}] for X {list(x)}",
        )
        ctx.set_dim("Output", (*x[:2], *grid[1:-1]))
        ctx.share_lod("X", "Output")


class GridSamplerGrad(GradOpDef, of=GridSampler, reads="X Grid", grads_of="X? Grid?"):
    """X@GRAD collects the weights of the samples; Grid@GRAD is the slope of X there, zero for nearest."""


class LinearInterp(InterpV1, type="linear_interp"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class LinearInterpGrad(InterpGrad, of=LinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp."""


class LinearInterpV2(InterpV2, type="linear_interp_v2"):
    r"""$$Out_i = (1 - d) X_{\lfloor s \rfloor} + d X_{\lfloor s \rfloor + 1}$$ with d = s - \lfloor s \rfloor.

    X is [N, C, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class LinearInterpV2Grad(InterpGrad, of=LinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in linear_interp_v2."""


class NearestInterp(InterpV1, type="nearest_interp"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class NearestInterpGrad(InterpGrad, of=NearestInterp):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp."""


class NearestInterpV2(InterpV2, type="nearest_interp_v2"):
    r"""$$Out_{y,x} = X_{\lfloor y r_h \rfloor, \lfloor x r_w \rfloor}$$, rounded to the nearest with align_corners.

    X is [N, C, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class NearestInterpV2Grad(InterpGrad, of=NearestInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in nearest_interp_v2."""


class TrilinearInterp(InterpV1, type="trilinear_interp"):
    r"""$$Out_{z,y,x} = \sum_{h,i,j \in \{0,1\}} |1 - h - f_z| |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_z \rfloor + h,
    \lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$

    Linear interpolation along D, H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from
    0 on, and f its fraction.

    X is [N, C, D, H, W]. The ratio of the sizes decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class TrilinearInterpGrad(InterpGrad, of=TrilinearInterp):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp."""


class TrilinearInterpV2(InterpV2, type="trilinear_interp_v2"):
    r"""$$Out_{z,y,x} = \sum_{h,i,j \in \{0,1\}} |1 - h - f_z| |1 - i - f_y| |1 - j - f_x| X_{\lfloor s_z \rfloor + h,
    \lfloor s_y \rfloor + i, \lfloor s_x \rfloor + j}$$

    Linear interpolation along D, H and W: s = r (y + 0.5) - 0.5 (with align_mode 0, without align_corners) or r y, from
    0 on, and f its fraction.

    X is [N, C, D, H, W]. scale, where given, decides where the samples lie.
    """

    sbp = leading(("X",), ("Out",))


class TrilinearInterpV2Grad(InterpGrad, of=TrilinearInterpV2):
    """Out@GRAD goes back to the elements of X with their weights in trilinear_interp_v2."""
