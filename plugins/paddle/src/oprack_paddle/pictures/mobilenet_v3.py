"""paddle.vision.models: MobileNet, third (Howard et al., 2019). Parameters have the names that Paddle's have."""

from __future__ import annotations

from functools import partial
from typing import Any

import oprack
from oprack import functional as F
from oprack import nn

from oprack_paddle.pictures.blocks import conv_norm, divisible
from oprack_paddle.pictures.weights import without_download

_conv = partial(conv_norm, momentum=0.99, epsilon=0.001)


class _Squeeze(nn.Module):
    """Channels, weighed by what their means say (Hu et al., 2018)."""

    def __init__(self, channels: int, middle: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2D(channels, middle, 1), nn.Conv2D(middle, channels, 1)

    def forward(self, x: Any) -> Any:
        """The weighed features."""
        means = F.pool2d(x, pooling_type="avg", global_pooling=True, ksize=[1, 1])
        return x * F.hard_sigmoid(self.fc2(F.relu(self.fc1(means))), slope=1 / 6, offset=0.5)


class _Block(nn.Module):
    """More channels, a convolution of each, weights of channels, and fewer again."""

    def __init__(
        self, inputs: int, middle: int, outputs: int, size: int, stride: int, squeezes: bool, act: Any
    ) -> None:
        super().__init__()
        self.use_res_connect = stride == 1 and inputs == outputs
        if inputs != middle:
            self.expand_conv = _conv(inputs, middle, 1, act=act)
        self.bottleneck_conv = _conv(middle, middle, size, stride, middle, act)
        if squeezes:
            self.mid_se = _Squeeze(middle, divisible(middle // 4))
        self.linear_conv = _conv(middle, outputs, 1)
        self._parts = [n for n in ("expand_conv", "bottleneck_conv", "mid_se", "linear_conv") if n in self._modules]

    def forward(self, x: Any) -> Any:
        """The features."""
        y = x
        for name in self._parts:
            y = getattr(self, name)(y)
        return x + y if self.use_res_connect else y


_SMALL = [
    (3, 16, 16, True, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 2), (3, 88, 24, False, nn.ReLU, 1),
    (5, 96, 40, True, nn.Hardswish, 2), *[(5, 240, 40, True, nn.Hardswish, 1)] * 2,
    (5, 120, 48, True, nn.Hardswish, 1), (5, 144, 48, True, nn.Hardswish, 1), (5, 288, 96, True, nn.Hardswish, 2),
    *[(5, 576, 96, True, nn.Hardswish, 1)] * 2,
]  # fmt: skip
_LARGE = [
    (3, 16, 16, False, nn.ReLU, 1), (3, 64, 24, False, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2), *[(5, 120, 40, True, nn.ReLU, 1)] * 2, (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1), *[(3, 184, 80, False, nn.Hardswish, 1)] * 2,
    (3, 480, 112, True, nn.Hardswish, 1), (3, 672, 112, True, nn.Hardswish, 1), (5, 672, 160, True, nn.Hardswish, 2),
    *[(5, 960, 160, True, nn.Hardswish, 1)] * 2,
]  # fmt: skip
"""Size of the convolution, its channels, channels that come out, whether they are weighed, activation, stride."""


class MobileNetV3(nn.Module):
    """The third MobileNet, of some blocks.

    Args:
        config: The blocks.
        last_channel: Width before the classes.
        scale: A factor on the channels.
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(
        self, config: Any, last_channel: int, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True
    ) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        width = divisible(16 * scale)
        self.conv = _conv(3, width, 3, 2, act=nn.Hardswish)
        blocks = []
        for size, middle, outputs, squeezes, act, stride in config:
            out = divisible(outputs * scale)
            blocks.append(_Block(width, divisible(middle * scale), out, size, stride, squeezes, act))
            width = out
        self.blocks = nn.Sequential(*blocks)
        self.lastconv = _conv(width, width * 6, 1, act=nn.Hardswish)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            ends = (nn.Linear(width * 6, last_channel), nn.Hardswish(), nn.Dropout(0.2))
            self.classifier = nn.Sequential(*ends, nn.Linear(last_channel, num_classes))

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.lastconv(self.blocks(self.conv(x)))
        x = self.avgpool(x) if self.with_pool else x
        return self.classifier(oprack.flatten(x, 1)) if self.num_classes > 0 else x


class MobileNetV3Small(MobileNetV3):
    """The small one."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_SMALL, divisible(1024 * scale), scale, num_classes, with_pool)


class MobileNetV3Large(MobileNetV3):
    """The large one."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_LARGE, divisible(1280 * scale), scale, num_classes, with_pool)


def mobilenet_v3_small(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Small:
    """The small one."""
    without_download("mobilenet_v3_small", pretrained)
    return MobileNetV3Small(scale=scale, **kwargs)


def mobilenet_v3_large(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Large:
    """The large one."""
    without_download("mobilenet_v3_large", pretrained)
    return MobileNetV3Large(scale=scale, **kwargs)
