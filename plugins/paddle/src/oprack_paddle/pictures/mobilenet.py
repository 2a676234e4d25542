"""paddle.vision.models: MobileNet, first and second. Parameters have the names that Paddle's have."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import nn

from oprack_paddle.pictures.blocks import conv_norm, divisible
from oprack_paddle.pictures.weights import without_download


class _Separable(nn.Module):
    """A convolution of each channel, and one of size 1."""

    def __init__(self, inputs: int, middle: int, outputs: int, stride: int, scale: float) -> None:
        super().__init__()
        width = int(middle * scale)
        self._depthwise_conv = conv_norm(inputs, width, 3, stride, width, nn.ReLU)
        self._pointwise_conv = conv_norm(width, int(outputs * scale), 1, act=nn.ReLU)

    def forward(self, x: Any) -> Any:
        """The features."""
        return self._pointwise_conv(self._depthwise_conv(x))


_FIRST = [
    (32, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    *[(512, 512, 1)] * 5,
    (512, 1024, 2),
    (1024, 1024, 1),
]


_NAMES = "conv2_1 conv2_2 conv3_1 conv3_2 conv4_1 conv4_2 conv5_1 conv5_2 conv5_3 conv5_4 conv5_5 conv5_6 conv6".split()


class MobileNetV1(nn.Module):
    """The first MobileNet.

    Args:
        scale: A factor on the channels.
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        self.conv1 = conv_norm(3, int(32 * scale), 3, 2, act=nn.ReLU)
        for name, (a, b, s) in zip(_NAMES, _FIRST, strict=True):
            setattr(self, name, _Separable(int(a * scale), a, b, s, scale))
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = nn.Linear(int(1024 * scale), num_classes)

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.conv1(x)
        for name in _NAMES:
            x = getattr(self, name)(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.fc(oprack.flatten(x, 1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV1:
    """The first MobileNet."""
    without_download("mobilenet_v1", pretrained)
    return MobileNetV1(scale=scale, **kwargs)


class _Inverted(nn.Module):
    """More channels, a convolution of each, and fewer again; beside a shortcut where sizes allow one."""

    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        width = round(inputs * factor)
        self.use_res_connect = stride == 1 and inputs == outputs
        layers = [conv_norm(inputs, width, 1, act=nn.ReLU6)] if factor != 1 else []
        layers += [
            conv_norm(width, width, 3, stride, width, nn.ReLU6),
            nn.Conv2D(width, outputs, 1, 1, 0, bias_attr=False),
            nn.BatchNorm2D(outputs),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        """The features."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


_SECOND = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class MobileNetV2(nn.Module):
    """The second MobileNet.

    Args:
        scale: A factor on the channels.
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        width, last = divisible(32 * scale), divisible(1280 * max(1.0, scale))
        features = [conv_norm(3, width, 3, 2, act=nn.ReLU6)]
        for factor, channels, count, stride in _SECOND:
            outputs = divisible(channels * scale)
            for i in range(count):
                features.append(_Inverted(width, outputs, stride if i == 0 else 1, factor))
                width = outputs
        features.append(conv_norm(width, last, 1, act=nn.ReLU6))
        self.features = nn.Sequential(*features)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, num_classes))

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.features(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.classifier(oprack.flatten(x, 1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """The second MobileNet."""
    without_download("mobilenet_v2", pretrained)
    return MobileNetV2(scale=scale, **kwargs)
