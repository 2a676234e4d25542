"""paddle.vision.models: LeNet, AlexNet, VGG and SqueezeNet. Parameters have the names that Paddle's have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oprack
import oprack.nn.functional as NF
from oprack import nn

from oprack_paddle.pictures.weights import without_download


class LeNet(nn.Module):
    """A small net for digits of 28 x 28."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5, stride=1, padding=0), nn.ReLU(), nn.MaxPool2D(2, 2),
        )  # fmt: skip
        if num_classes > 0:
            self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes))

    def forward(self, inputs: Any) -> Any:
        """The scores of classes."""
        x = self.features(inputs)
        return self.fc(oprack.flatten(x, 1)) if self.num_classes > 0 else x


class _PooledConv(nn.Module):
    """A convolution, relu and max pooling."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int, padding: int) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, size, stride=stride, padding=padding)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=0)

    def forward(self, x: Any) -> Any:
        """The features."""
        return self._pool(NF.relu(self._conv(x)))


class AlexNet(nn.Module):
    """The net that won in 2012."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.num_classes = num_classes
        self._conv1 = _PooledConv(3, 64, 11, 4, 2)
        self._conv2 = _PooledConv(64, 192, 5, 1, 2)
        self._conv3 = nn.Conv2D(192, 384, 3, stride=1, padding=1)
        self._conv4 = nn.Conv2D(384, 256, 3, stride=1, padding=1)
        self._conv5 = _PooledConv(256, 256, 3, 1, 1)
        if num_classes > 0:
            self._drop1, self._drop2 = nn.Dropout(0.5), nn.Dropout(0.5)
            self._fc6, self._fc7, self._fc8 = nn.Linear(9216, 4096), nn.Linear(4096, 4096), nn.Linear(4096, num_classes)

    def forward(self, inputs: Any) -> Any:
        """The scores of classes."""
        x = self._conv2(self._conv1(inputs))
        x = self._conv5(NF.relu(self._conv4(NF.relu(self._conv3(x)))))
        if self.num_classes <= 0:
            return x
        x = NF.relu(self._fc6(self._drop1(oprack.flatten(x, 1))))
        return self._fc8(NF.relu(self._fc7(self._drop2(x))))


def alexnet(pretrained: bool = False, **kwargs: Any) -> AlexNet:
    """AlexNet."""
    without_download("alexnet", pretrained)
    return AlexNet(**kwargs)


class VGG(nn.Module):
    """Convolutions of size 3 and pooling, one after the other."""

    def __init__(self, features: Any, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.features, self.num_classes, self.with_pool = features, num_classes, with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(),
                nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, num_classes),
            )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.features(x)
        x = self.avgpool(x) if self.with_pool else x
        return self.classifier(oprack.flatten(x, 1)) if self.num_classes > 0 else x


_COUNTS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def _vgg(depth: int) -> Callable[..., VGG]:
    def net(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
        without_download(f"vgg{depth}", pretrained)
        layers: list[Any] = []
        channels = 3
        for width, count in zip((64, 128, 256, 512, 512), _COUNTS[depth], strict=True):
            for _ in range(count):
                layers.append(nn.Conv2D(channels, width, kernel_size=3, padding=1))
                layers += [nn.BatchNorm2D(width), nn.ReLU()] if batch_norm else [nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2D(kernel_size=2, stride=2))
        return VGG(nn.Sequential(*layers), **kwargs)

    net.__name__ = net.__qualname__ = f"vgg{depth}"
    net.__doc__ = f"VGG of {depth} layers."
    return net


vgg11, vgg13, vgg16, vgg19 = _vgg(11), _vgg(13), _vgg(16), _vgg(19)


class _ReluConv(nn.Module):
    """A convolution and relu."""

    def __init__(self, inputs: int, outputs: int, size: int, padding: int = 0) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, size, padding=padding)

    def forward(self, x: Any) -> Any:
        """The features."""
        return NF.relu(self._conv(x))


class _Fire(nn.Module):
    """Fewer channels, and from them more, by kernels of two sizes."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self._conv = _ReluConv(inputs, squeezed, 1)
        self._conv_path1 = _ReluConv(squeezed, expanded, 1)
        self._conv_path2 = _ReluConv(squeezed, expanded, 3, padding=1)

    def forward(self, x: Any) -> Any:
        """The features."""
        x = self._conv(x)
        return oprack.concat([self._conv_path1(x), self._conv_path2(x)], axis=1)


class SqueezeNet(nn.Module):
    """A net of few parameters.

    Args:
        version: "1.0" or "1.1".
        num_classes: The number of classes.
        with_pool: Whether scores are averaged over the picture.
    """

    def __init__(self, version: str, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        if version not in ("1.0", "1.1"):
            raise ValueError(f'SqueezeNet: version is {version!r}; expected "1.0" or "1.1"')
        self.version, self.num_classes, self.with_pool = version, num_classes, with_pool
        first = version == "1.0"
        self._conv = nn.Conv2D(3, 96 if first else 64, 7 if first else 3, stride=2, padding=0 if first else 1)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=0)
        sizes = [
            (96 if first else 64, 16, 64),
            (128, 16, 64),
            (128, 32, 128),
            (256, 32, 128),
            (256, 48, 192),
            (384, 48, 192),
            (384, 64, 256),
            (512, 64, 256),
        ]
        names = ("_conv1", "_conv2", "_conv3", "_conv4", "_conv5", "_conv6", "_conv7", "_conv8")
        for name, size in zip(names, sizes, strict=True):
            setattr(self, name, _Fire(*size))
        self._drop = nn.Dropout(p=0.5)
        self._conv9 = nn.Conv2D(512, num_classes, 1)
        self._avg_pool = nn.AdaptiveAvgPool2D(1)

    def forward(self, inputs: Any) -> Any:
        """The scores of classes."""
        pooled = (3, 7) if self.version == "1.0" else (2, 4)
        x = self._pool(NF.relu(self._conv(inputs)))
        for i in range(1, 9):
            x = getattr(self, f"_conv{i}")(x)
            x = self._pool(x) if i in pooled else x
        if self.num_classes > 0:
            x = NF.relu(self._conv9(self._drop(x)))
        return self._avg_pool(x).squeeze([2, 3]) if self.with_pool else x


def squeezenet1_0(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    without_download("squeezenet1_0", pretrained)
    return SqueezeNet("1.0", **kwargs)


def squeezenet1_1(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1."""
    without_download("squeezenet1_1", pretrained)
    return SqueezeNet("1.1", **kwargs)
