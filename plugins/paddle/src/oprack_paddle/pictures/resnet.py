"""paddle.vision.models: residual nets. Parameters have the names that Paddle's have, so its files of weights fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oprack
from oprack import nn

from oprack_paddle.pictures.weights import without_download


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(inplanes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(planes)
        self.downsample = downsample

    def forward(self, x: Any) -> Any:
        """The features."""
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class BottleneckBlock(nn.Module):
    """A convolution between two of size 1, beside a shortcut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
    ) -> None:
        super().__init__()
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = nn.Conv2D(inplanes, width, 1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(width)
        self.conv2 = nn.Conv2D(
            width, width, 3, padding=dilation, stride=stride, groups=groups, dilation=dilation, bias_attr=False
        )
        self.bn2 = nn.BatchNorm2D(width)
        self.conv3 = nn.Conv2D(width, planes * 4, 1, bias_attr=False)
        self.bn3 = nn.BatchNorm2D(planes * 4)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x: Any) -> Any:
        """The features."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """A residual net.

    Args:
        block: BasicBlock or BottleneckBlock.
        depth: The number of layers.
        width: The width of one group of a bottleneck.
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
        groups: The groups of convolutions.
    """

    def __init__(
        self,
        block: Any,
        depth: int = 50,
        width: int = 64,
        num_classes: int = 1000,
        with_pool: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        counts = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}[depth]
        self._settings = (groups, width)
        self.num_classes, self.with_pool, self.inplanes = num_classes, with_pool, 64
        self.conv1 = nn.Conv2D(3, 64, kernel_size=7, stride=2, padding=3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        for i, planes in enumerate((64, 128, 256, 512)):
            setattr(self, f"layer{i + 1}", self._layer(block, planes, counts[i], 1 if i == 0 else 2))
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _layer(self, block: Any, planes: int, count: int, stride: int) -> Any:
        groups, width = self._settings
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2D(self.inplanes, planes * block.expansion, 1, stride=stride, bias_attr=False),
                nn.BatchNorm2D(planes * block.expansion),
            )
        blocks = [block(self.inplanes, planes, stride, downsample, groups, width)]
        self.inplanes = planes * block.expansion
        blocks += [block(self.inplanes, planes, groups=groups, base_width=width) for _ in range(1, count)]
        return nn.Sequential(*blocks)

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x) if self.with_pool else x
        return self.fc(oprack.flatten(x, 1)) if self.num_classes > 0 else x


def _net(name: str, block: Any, depth: int, width: int = 64, groups: int = 1) -> Callable[..., ResNet]:
    def net(pretrained: bool = False, **kwargs: Any) -> ResNet:
        without_download(name, pretrained)
        return ResNet(block, depth, **{"width": width, "groups": groups, **kwargs})

    net.__name__ = net.__qualname__ = name
    net.__doc__ = f"ResNet of {depth} layers, {groups} groups of width {width}."
    return net


resnet18 = _net("resnet18", BasicBlock, 18)
resnet34 = _net("resnet34", BasicBlock, 34)
resnet50 = _net("resnet50", BottleneckBlock, 50)
resnet101 = _net("resnet101", BottleneckBlock, 101)
resnet152 = _net("resnet152", BottleneckBlock, 152)
resnext50_32x4d = _net("resnext50_32x4d", BottleneckBlock, 50, 4, 32)
resnext50_64x4d = _net("resnext50_64x4d", BottleneckBlock, 50, 4, 64)
resnext101_32x4d = _net("resnext101_32x4d", BottleneckBlock, 101, 4, 32)
resnext101_64x4d = _net("resnext101_64x4d", BottleneckBlock, 101, 4, 64)
resnext152_32x4d = _net("resnext152_32x4d", BottleneckBlock, 152, 4, 32)
resnext152_64x4d = _net("resnext152_64x4d", BottleneckBlock, 152, 4, 64)
wide_resnet50_2 = _net("wide_resnet50_2", BottleneckBlock, 50, 128)
wide_resnet101_2 = _net("wide_resnet101_2", BottleneckBlock, 101, 128)
