"""Images made larger, padded and rearranged, as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.nn import Module

from oprack_nn.functional import vision as V

if TYPE_CHECKING:
    from oprack import Tensor


class Upsample(Module):
    """Images in another size; see oprack.nn.functional.interpolate."""

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
    """Upsample of images by their nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2D(Upsample):
    """Upsample of images by straight lines between their corner pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels as pixels: [N, C r^2, H, W] to [N, C, H r, W r]."""

    def __init__(self, upscale_factor: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = upscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.pixel_shuffle(x, *self.settings)


class PixelUnshuffle(Module):
    """Pixels as channels: [N, C, H r, W r] to [N, C r^2, H, W]."""

    def __init__(self, downscale_factor: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = downscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.pixel_unshuffle(x, *self.settings)


class ChannelShuffle(Module):
    """Channels of groups in turn: the first of each group, then the second of each, and so on."""

    def __init__(self, groups: int, data_format: str = "NCHW") -> None:
        super().__init__()
        self.settings = groups, data_format

    def forward(self, x: Tensor) -> Tensor:
        return V.channel_shuffle(x, *self.settings)


class Unfold(Module):
    """The windows of images as columns: [N, C, H, W] to [N, C times the window's size, windows]."""

    def __init__(self, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1) -> None:
        super().__init__()
        self.settings = kernel_sizes, strides, paddings, dilations

    def forward(self, x: Tensor) -> Tensor:
        return V.unfold(x, *self.settings)


class Fold(Module):
    """Columns as the windows of images, whose overlapping elements are added: the opposite of Unfold."""

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
    """Elements added around lines: [left, right]; mode: "constant", "reflect", "replicate" or "circular"."""

    dims = 1


class Pad2D(_Pad):
    """Pixels added around images: [left, right, top, bottom]; mode: "constant", "reflect", "replicate", "circular"."""


class Pad3D(_Pad):
    """Elements added around volumes: [left, right, top, bottom, front, back]; mode as for Pad2D."""

    dims = 3


class ZeroPad2D(Pad2D):
    """Zeros around images: [left, right, top, bottom], or one number for all."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)
