"""paddle.vision.models: ShuffleNet, second (Ma et al., 2018). Parameters have the names that Paddle's have."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import functional as F
from oprack import nn

from oprack_paddle.pictures.blocks import conv_norm
from oprack_paddle.pictures.weights import without_download

_WIDTHS = {
    0.25: (24, 24, 48, 96, 512), 0.33: (24, 32, 64, 128, 512), 0.5: (24, 48, 96, 192, 1024),
    1.0: (24, 116, 232, 464, 1024), 1.5: (24, 176, 352, 704, 1024), 2.0: (24, 224, 488, 976, 2048),
}  # fmt: skip
"""Channels of the first convolution, of three stages, and of the last convolution, by scale."""


class _Halves(nn.Module):
    """One half of the channels stays, the other one passes three convolutions."""

    def __init__(self, channels: int, act: Any) -> None:
        super().__init__()
        half = channels // 2
        self._conv_pw = conv_norm(half, half, 1, act=act)
        self._conv_dw = conv_norm(half, half, 3, 1, half)
        self._conv_linear = conv_norm(half, half, 1, act=act)

    def forward(self, x: Any) -> Any:
        """The features."""
        stays, goes = F.split(x, num=2, axis=1)
        found = self._conv_linear(self._conv_dw(self._conv_pw(goes)))
        return F.channel_shuffle(F.concat([stays, found], axis=1), groups=2)


class _Smaller(nn.Module):
    """Half the size: two ways, whose channels are joined."""

    def __init__(self, inputs: int, outputs: int, act: Any) -> None:
        super().__init__()
        half = outputs // 2
        self._conv_dw_1 = conv_norm(inputs, inputs, 3, 2, inputs)
        self._conv_linear_1 = conv_norm(inputs, half, 1, act=act)
        self._conv_pw_2 = conv_norm(inputs, half, 1, act=act)
        self._conv_dw_2 = conv_norm(half, half, 3, 2, half)
        self._conv_linear_2 = conv_norm(half, half, 1, act=act)

    def forward(self, x: Any) -> Any:
        """The features."""
        one = self._conv_linear_1(self._conv_dw_1(x))
        two = self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x)))
        return F.channel_shuffle(F.concat([one, two], axis=1), groups=2)


class ShuffleNetV2(nn.Module):
    """The second ShuffleNet.

    Args:
        scale: A factor on the channels: 0.25, 0.33, 0.5, 1.0, 1.5 or 2.0.
        act: "relu" or "swish".
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(self, scale: float = 1.0, act: str = "relu", num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        if scale not in _WIDTHS or act not in ("relu", "swish"):
            raise NotImplementedError(
                f"ShuffleNetV2: got scale {scale} and act {act!r}; expected one of {', '.join(map(str, _WIDTHS))}, and "
                "'relu' or 'swish'"
            )
        self.num_classes, self.with_pool = num_classes, with_pool
        first, *stages, last = _WIDTHS[scale]
        kind = nn.ReLU if act == "relu" else nn.Swish
        self._conv1 = conv_norm(3, first, 3, 2, act=kind)
        self._max_pool = nn.MaxPool2D(3, 2, 1)
        self._blocks, width = [], first
        for stage, (outputs, count) in enumerate(zip(stages, (4, 8, 4), strict=True), 2):
            for i in range(count):
                name = f"{stage}_{i + 1}"
                self.add_module(name, _Halves(outputs, kind) if i else _Smaller(width, outputs, kind))
                self._blocks.append(name)
            width = outputs
        self._last_conv = conv_norm(width, last, 1, act=kind)
        if with_pool:
            self._pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self._fc = nn.Linear(last, num_classes)

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self._max_pool(self._conv1(x))
        for name in self._blocks:
            x = getattr(self, name)(x)
        x = self._last_conv(x)
        x = self._pool2d_avg(x) if self.with_pool else x
        return self._fc(oprack.flatten(x, 1)) if self.num_classes > 0 else x


def _of_scale(name: str, scale: float, act: str = "relu") -> Any:
    def made(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
        without_download(name, pretrained)
        return ShuffleNetV2(scale=scale, act=act, **kwargs)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"The second ShuffleNet with {scale} times the channels, by {act}."
    return made


shufflenet_v2_x0_25 = _of_scale("shufflenet_v2_x0_25", 0.25)
shufflenet_v2_x0_33 = _of_scale("shufflenet_v2_x0_33", 0.33)
shufflenet_v2_x0_5 = _of_scale("shufflenet_v2_x0_5", 0.5)
shufflenet_v2_x1_0 = _of_scale("shufflenet_v2_x1_0", 1.0)
shufflenet_v2_x1_5 = _of_scale("shufflenet_v2_x1_5", 1.5)
shufflenet_v2_x2_0 = _of_scale("shufflenet_v2_x2_0", 2.0)
shufflenet_v2_swish = _of_scale("shufflenet_v2_swish", 1.0, "swish")
