"""Images made larger, padded and rearranged, as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.nn import Module

from oprack_nn.functional import vision as V

if TYPE_CHECKING:
    from oprack import Tensor


class Upsample(Module):
    """Resizes images, sequences or volumes; see oprack.nn.functional.interpolate.

    Args:
        size: The new size, one number or one per spatial dim.
        scale_factor: How many times as large instead, one number or one per spatial dim.
        mode: "nearest"; "linear", "bilinear", "bicubic" or "trilinear", as the rank is; "area" for means.
        align_corners: Whether the centres of the corner pixels stay where they are.
        align_mode: 0 counts from the centres of pixels, 1 from their corners.
        data_format: With the channels second ("NCHW" ...) or last ("NHWC" ...).
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: int = 0,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.settings = size, scale_factor, mode, align_corners, align_mode, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.interpolate(x, *self.settings)


class UpsamplingNearest2D(Upsample):
    """Resizes images [N, C, H, W] by their nearest pixels.

    Args:
        size: The new size, one number or one per spatial dim.
        scale_factor: How many times as large instead, one number or one per spatial dim.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2D(Upsample):
    """Resizes images [N, C, H, W] by bilinear interpolation with aligned corners.

    Args:
        size: The new size, one number or one per spatial dim.
        scale_factor: How many times as large instead, one number or one per spatial dim.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class PixelShuffle(Module):
    """Rearranges channels into pixels: [N, C r^2, H, W] to [N, C, H r, W r] (Shi et al., 2016).

    Args:
        upscale_factor: The factor r.
        data_format: "NCHW" or "NHWC".
    """

    def __init__(self, upscale_factor: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = upscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.pixel_shuffle(x, *self.settings)


class PixelUnshuffle(Module):
    """Rearranges pixels into channels: [N, C, H r, W r] to [N, C r^2, H, W].

    Args:
        downscale_factor: The factor r.
        data_format: "NCHW" or "NHWC".
    """

    def __init__(self, downscale_factor: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = downscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.pixel_unshuffle(x, *self.settings)


class ChannelShuffle(Module):
    """Interleaves the channels of groups: the first of each group, then the second of each (Zhang et al., 2018).

    Args:
        groups: Number of groups, of which the number of channels is a multiple.
        data_format: "NCHW" or "NHWC".
    """

    def __init__(self, groups: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = groups, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.channel_shuffle(x, *self.settings)


class Unfold(Module):
    """Extracts the windows of images as columns (im2col): [N, C, H, W] to [N, C * window size, windows].

    Args:
        kernel_sizes: Size of a window, one number or [height, width].
        strides: Step between windows, one number or [height, width].
        paddings: Zeros around images: one number, [height, width], or [top, left, bottom, right].
        dilations: Distance between the elements of a window, one number or [height, width].
    """

    def __init__(self, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1) -> None:
        super().__init__()
        self.settings = kernel_sizes, strides, paddings, dilations

    def forward(self, x: Tensor) -> Tensor:
        return V.unfold(x, *self.settings)


class Fold(Module):
    """Adds up columns as the windows of images (col2im): [N, C * window size, windows] to [N, C, *output_sizes].

    Args:
        output_sizes: Size of the images, one number or [height, width].
        kernel_sizes: Size of a window, one number or [height, width].
        strides: Step between windows, one number or [height, width].
        paddings: Zeros around images: one number, [height, width], or [top, left, bottom, right].
        dilations: Distance between the elements of a window, one number or [height, width].
    """

    def __init__(
        self, output_sizes: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1
    ) -> None:
        super().__init__()
        self.settings = output_sizes, kernel_sizes, strides, paddings, dilations

    def forward(self, x: Tensor) -> Tensor:
        return V.fold(x, *self.settings)


class _Pad(Module):
    dims = 2

    def __init__(self, padding: int | Sequence[int], mode: str = "constant", value: float = 0.0) -> None:
        super().__init__()
        self.padding = [padding] * (2 * self.dims) if isinstance(padding, int) else [int(v) for v in padding]
        self.mode, self.value = mode, value

    def forward(self, x: Tensor) -> Tensor:
        return V.pad(x, self.padding, self.mode, self.value)


class Pad1D(_Pad):
    """Adds elements around sequences [N, C, L].

    Args:
        padding: How many: [left, right], or one number for both.
        mode: What to add: "constant", "reflect", "replicate" or "circular".
        value: The number that "constant" adds.
    """

    dims = 1


class Pad2D(_Pad):
    """Adds pixels around images [N, C, H, W].

    Args:
        padding: How many: [left, right, top, bottom], or one number for all.
        mode: What to add: "constant", "reflect", "replicate" or "circular".
        value: The number that "constant" adds.
    """


class Pad3D(_Pad):
    """Adds elements around volumes [N, C, D, H, W].

    Args:
        padding: How many: [left, right, top, bottom, front, back], or one number for all.
        mode: What to add: "constant", "reflect", "replicate" or "circular".
        value: The number that "constant" adds.
    """

    dims = 3


class ZeroPad2D(Pad2D):
    """Adds zeros around images [N, C, H, W].

    Args:
        padding: How many: [left, right, top, bottom], or one number for all.
    """

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)
