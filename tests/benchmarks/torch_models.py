"""Models written for PyTorch: the twins of those that make_models.py makes, with random weights of their own."""

from __future__ import annotations

import torch
from torch import nn
from workloads import Workload


class TinyOps(nn.Module):
    """The chain of make_models.py: scale, relu, add of itself, in turns."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self._count):
            kind = i % 3
            if kind == 0:
                x = x * 0.5
            elif kind == 1:
                x = torch.relu(x)
            else:
                x = x + x
        return x


def _conv(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Convolution without bias, and batch norm."""
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    """relu(x + layers(x)), where x is projected when its shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        changes = inputs != outputs or stride > 1
        self.shortcut = nn.Sequential(*_conv(inputs, outputs, 1, stride)) if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.shortcut(x) + self.layers(x))


def resnet(blocks: tuple[int, ...], bottleneck: bool, classes: int) -> nn.Sequential:
    """ResNet: (2, 2, 2, 2) without bottleneck is ResNet-18, (3, 4, 6, 3) with it is ResNet-50."""
    layers = [*_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        outputs = width * 4 if bottleneck else width
        for i in range(count):
            stride = 2 if stage and not i else 1
            inner = [*_conv(inputs, width, 3, stride), nn.ReLU(), *_conv(width, width, 3)]
            if bottleneck:
                inner = [*_conv(inputs, width, 1), nn.ReLU(), *_conv(width, width, 3, stride), nn.ReLU()]
                inner += _conv(width, outputs, 1)
            layers.append(Residual(inputs, outputs, stride, inner))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Inverted(nn.Module):
    """Inverted residual block: expand, convolve each channel, project."""

    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        inner = inputs * factor
        layers = [*_conv(inputs, inner, 1), nn.ReLU6()] if factor > 1 else []
        layers += [*_conv(inner, inner, 3, stride, inner), nn.ReLU6(), *_conv(inner, outputs, 1)]
        self.layers, self.adds = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        return x + y if self.adds else y


def mobilenet_v2() -> nn.Sequential:
    """MobileNetV2 of width 1: rows of (factor, outputs, blocks, first stride)."""
    layers, inputs = [*_conv(3, 32, 3, 2), nn.ReLU6()], 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, outputs, count, first in rows:
        for i in range(count):
            layers.append(Inverted(inputs, outputs, first if not i else 1, factor))
            inputs = outputs
    layers += [*_conv(inputs, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


class Bert(nn.Module):
    """Encoder of BERT base: 12 layers, 768 wide, 12 heads; returns the vector of the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.LayerNorm(768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1]).unsqueeze(0)
        return self.encoder(self.norm(self.words(ids) + self.places(places)))[:, 0]


_BUILD = {"resnet50": lambda: resnet((3, 4, 6, 3), True, 1000), "mobilenet_v2": mobilenet_v2, "bert_base": Bert}


def build(workload: Workload) -> nn.Module:
    """The model of a workload."""
    model = TinyOps(workload.chain) if workload.chain else _BUILD[workload.name.split()[0]]()
    return model.eval()
