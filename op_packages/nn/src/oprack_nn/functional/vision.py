"""Images made larger, padded and rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_nn.functional.common import lod_of

if TYPE_CHECKING:
    from oprack import Tensor

# By rank of the image: mode -> op.
_RESIZES = {
    3: {"linear": "linear_interp_v2", "nearest": "nearest_interp_v2"},
    4: {"bilinear": "bilinear_interp_v2", "nearest": "nearest_interp_v2", "bicubic": "bicubic_interp_v2"},
    5: {"trilinear": "trilinear_interp_v2", "nearest": "nearest_interp_v2"},
}


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
) -> Tensor:
    """Images [N, C, H, W], lines [N, C, L] or volumes [N, C, D, H, W] in another size.

    Args:
        x: The images.
        size: The new size, one number or one per dim.
        scale_factor: How many times as large instead.
        mode: "nearest"; "linear", "bilinear", "bicubic" or "trilinear", as the rank is; "area" for means.
        align_corners: Whether the centres of the corner pixels stay where they are.
        align_mode: 0 counts from the centres of pixels, 1 from their corners.
        data_format: With the channels second or last.

    Returns:
        The images.

    Raises:
        InvalidArgumentError: Size and scale_factor are both given, or neither; or the mode does not fit the rank.
    """
    rank = x.ndim
    if (size is None) == (scale_factor is None):
        raise InvalidArgumentError(
            f"interpolate: size is {size!r}, scale_factor {scale_factor!r}; expected one of them"
        )
    if mode == "area":
        return F.pool2d(x, pooling_type="avg", ksize=_target(x, size, scale_factor), adaptive=True)
    op_type = _RESIZES.get(rank, {}).get(mode)
    if op_type is None:
        known = ", ".join(_RESIZES.get(rank, {})) or "an image of rank 3, 4 or 5"
        raise InvalidArgumentError(f"interpolate: mode is {mode!r} and x has shape {list(x.shape)}; expected {known}")
    attrs: dict[str, Any] = {"interp_method": mode, "align_corners": align_corners, "align_mode": align_mode}
    attrs["data_layout"] = "NCHW" if data_format.startswith("NC") else "NHWC"
    lines = rank == 3 and mode == "nearest"  # which nearest_interp_v2 has for images alone
    images, spatial = (x.unsqueeze(2 if attrs["data_layout"] == "NCHW" else 1), 2) if lines else (x, rank - 2)
    if size is not None:
        sizes = [size] * (rank - 2) if isinstance(size, int) else [int(v) for v in size]
        sizes = [1, *sizes] if lines else sizes
        attrs |= dict(zip(("out_d", "out_h", "out_w")[3 - spatial :], sizes, strict=True))
    else:
        given = scale_factor if isinstance(scale_factor, list | tuple) else [scale_factor] * (rank - 2)
        attrs["scale"] = [*([1.0] if lines else []), *map(float, given)]
    found = getattr(F, op_type)(images, **attrs)
    return lod_of(x, found.squeeze(2 if attrs["data_layout"] == "NCHW" else 1) if lines else found)


def _target(x: Tensor, size: Any, scale: Any) -> list[int]:
    if size is not None:
        return [size] * 2 if isinstance(size, int) else [int(v) for v in size]
    factors = scale if isinstance(scale, list | tuple) else [scale] * 2
    return [int(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]


def upsample(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
) -> Tensor:
    """Resizes images; the older name of interpolate.

    Args:
        x: Images [N, C, H, W], sequences [N, C, L] or volumes [N, C, D, H, W], or with channels last.
        size: The new size, one number or one per spatial dim.
        scale_factor: How many times as large instead, one number or one per spatial dim.
        mode: "nearest"; "linear", "bilinear", "bicubic" or "trilinear", as the rank is; "area" for means.
        align_corners: Whether the centres of the corner pixels stay where they are.
        align_mode: 0 counts from the centres of pixels, 1 from their corners.
        data_format: With the channels second ("NCHW" ...) or last ("NHWC" ...).

    Returns:
        The resized images, of the dtype of x.

    Raises:
        InvalidArgumentError: Both or neither of size and scale_factor are given, or mode does not fit the rank.
    """
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


def pad(
    x: Tensor, pad: int | Sequence[int], mode: str = "constant", value: float = 0.0, data_format: str = "NCHW"
) -> Tensor:
    """Adds elements around images, or along every dim of a tensor.

    Args:
        x: Images [N, C, H, W], sequences [N, C, L] or volumes [N, C, D, H, W], or with channels last; any shape when
            pad has a pair for every dim.
        pad: How many elements to add: [left, right, top, bottom, front, back], pairs from the last spatial dim to the
            first, or one number for all. With mode "constant" and a pair for every dim of x, pairs from the first dim
            to the last.
        mode: What to add: "constant", "reflect", "replicate" or "circular".
        value: The number that "constant" adds.
        data_format: With the channels second ("NCHW" ...) or last ("NHWC" ...).

    Returns:
        The padded tensor, of the dtype of x.

    Raises:
        InvalidArgumentError: pad has not two numbers for each of some spatial dims, or for every dim of x.
    """
    sizes = [pad] * (2 * (x.ndim - 2)) if isinstance(pad, int) else [int(v) for v in pad]
    if len(sizes) == 2 * x.ndim and mode == "constant":
        return F.pad(x, paddings=sizes, pad_value=float(value))
    dims = len(sizes) // 2
    if len(sizes) % 2 or x.ndim not in (3, 4, 5) or dims > x.ndim - 2:
        raise InvalidArgumentError(
            f"pad: pad is {sizes} and x has shape {list(x.shape)}; expected two numbers for each of the "
            f"{max(x.ndim - 2, 0)} dims of an image, from the last to the first, or for each dim of x"
        )
    first = 2 if data_format.startswith("NC") else 1
    missing = 5 - x.ndim
    volumes = x.unsqueeze(list(range(first, first + missing))) if missing else x
    attrs = {"paddings": sizes + [0] * (6 - len(sizes)), "mode": mode, "value": float(value)}
    found = F.pad3d(volumes, data_format="NCDHW" if first == 2 else "NDHWC", **attrs)
    return found.squeeze(list(range(first, first + missing))) if missing else found


def zeropad2d(x: Tensor, padding: int | Sequence[int], data_format: str = "NCHW") -> Tensor:
    """Adds zeros around images.

    Args:
        x: Images [N, C, H, W].
        padding: How many: [left, right, top, bottom], or one number for all four sides.
        data_format: "NCHW" or "NHWC".

    Returns:
        The padded images, of the dtype of x.

    Raises:
        InvalidArgumentError: padding has another number of elements.
    """
    return pad(x, [padding] * 4 if isinstance(padding, int) else padding, data_format=data_format)


def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """Rearranges channels into pixels: [N, C r^2, H, W] to [N, C, H r, W r] (Shi et al., 2016).

    Args:
        x: Images whose number of channels is a multiple of the square of upscale_factor.
        upscale_factor: The factor r.
        data_format: "NCHW" or "NHWC".

    Returns:
        The larger images.
    """
    return lod_of(x, F.pixel_shuffle(x, upscale_factor=int(upscale_factor), data_format=data_format))


def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """Rearranges pixels into channels: [N, C, H r, W r] to [N, C r^2, H, W].

    Args:
        x: Images whose height and width are multiples of downscale_factor.
        downscale_factor: The factor r.
        data_format: "NCHW" or "NHWC".

    Returns:
        The smaller images.
    """
    return lod_of(x, F.pixel_unshuffle(x, downscale_factor=int(downscale_factor), data_format=data_format))


def channel_shuffle(x: Tensor, groups: int, data_format: str = "NCHW") -> Tensor:
    """Interleaves the channels of groups (Zhang et al., 2018).

    The first channel of each group comes first, then the second of each, and so on.

    Args:
        x: Images [N, C, H, W] with a number of channels that is a multiple of groups.
        groups: Number of groups.
        data_format: "NCHW" or "NHWC".

    Returns:
        Images of the shape of x.
    """
    return lod_of(x, F.channel_shuffle(x, groups=int(groups), data_format=data_format))


def unfold(x: Tensor, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1) -> Tensor:
    """Extracts the windows of images as columns (im2col).

    Args:
        x: Images [N, C, H, W].
        kernel_sizes: Size of a window, one number or [height, width].
        strides: Step between windows, one number or [height, width].
        paddings: Zeros around images: one number, [height, width], or [top, left, bottom, right].
        dilations: Distance between the elements of a window, one number or [height, width].

    Returns:
        Columns [N, C * window size, windows].
    """
    pads = _pair(paddings)
    found = F.unfold(
        x,
        kernel_sizes=_pair(kernel_sizes),
        strides=_pair(strides),
        paddings=pads * 2 if len(pads) == 2 else pads,
        dilations=_pair(dilations),
    )
    return lod_of(x, found)


def fold(
    x: Tensor, output_sizes: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1
) -> Tensor:
    """Adds up columns as the windows of images (col2im): the transpose of unfold.

    Args:
        x: Columns [N, C * window size, windows].
        output_sizes: Size of the images, one number or [height, width].
        kernel_sizes: Size of a window, one number or [height, width].
        strides: Step between windows, one number or [height, width].
        paddings: Zeros around images: one number, [height, width], or [top, left, bottom, right].
        dilations: Distance between the elements of a window, one number or [height, width].

    Returns:
        Images [N, C, *output_sizes]; elements of windows that overlap are added.
    """
    pads = _pair(paddings)
    found = F.fold(
        x,
        output_sizes=_pair(output_sizes),
        kernel_sizes=_pair(kernel_sizes),
        strides=_pair(strides),
        paddings=pads * 2 if len(pads) == 2 else pads,
        dilations=_pair(dilations),
    )
    return lod_of(x, found)


def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = True
) -> Tensor:
    """Samples images at the points of a grid.

    Args:
        x: Images [N, C, H, W].
        grid: Points (x, y) [N, h, w, 2]; -1 and 1 are the borders of the image.
        mode: Interpolation between pixels: "bilinear" or "nearest".
        padding_mode: Values outside of images: "zeros", "border" or "reflection".
        align_corners: Whether -1 and 1 are the centres of the corner pixels; False: their outer edges.

    Returns:
        Images [N, C, h, w].
    """
    found = F.grid_sampler(x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    return lod_of(x, found)


def affine_grid(theta: Tensor, out_shape: Sequence[int], align_corners: bool = True) -> Tensor:
    """Makes the grid of an affine map, for grid_sample.

    Args:
        theta: Maps [N, 2, 3], floats.
        out_shape: The shape [N, C, h, w] of the images to be sampled.
        align_corners: Whether -1 and 1 are the centres of the corner pixels; False: their outer edges.

    Returns:
        Grids [N, h, w, 2].
    """
    return F.affine_grid(theta, output_shape=[int(v) for v in out_shape], align_corners=align_corners)


def _pair(value: Any) -> list[int]:
    return [value] * 2 if isinstance(value, int) else [int(v) for v in value]
