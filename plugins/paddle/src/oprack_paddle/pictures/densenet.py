"""paddle.vision.models: DenseNet (Huang et al., 2017) and GoogLeNet (Szegedy et al., 2015), with Paddle's names."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import functional as F
from oprack import nn

from oprack_paddle.pictures.weights import without_download

_LAYERS = {
    121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)), 264: (64, 32, (6, 12, 64, 48)),
}  # fmt: skip
"""Channels of the first convolution, those that each layer adds, and the layers of four blocks."""


class _NormConv(nn.Module):
    """A norm, an activation and a convolution."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self._batch_norm = nn.BatchNorm(inputs)
        self._conv = nn.Conv2D(inputs, outputs, size, 1, (size - 1) // 2, bias_attr=False)

    def forward(self, x: Any) -> Any:
        """The features."""
        return self._conv(F.relu(self._batch_norm(x)))


class _ConvNorm(nn.Module):
    """A convolution, a norm and an activation."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, size, stride, (size - 1) // 2, bias_attr=False)
        self._batch_norm = nn.BatchNorm(outputs)

    def forward(self, x: Any) -> Any:
        """The features."""
        return F.relu(self._batch_norm(self._conv(x)))


class _Dense(nn.Module):
    """A layer whose features are joined to those that came in."""

    def __init__(self, inputs: int, growth: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.bn_ac_func1 = _NormConv(inputs, factor * growth, 1)
        self.bn_ac_func2 = _NormConv(factor * growth, growth, 3)
        if dropout:
            self.dropout_func = nn.Dropout(dropout, mode="downscale_in_infer")
        self._drops = bool(dropout)

    def forward(self, x: Any) -> Any:
        """The features."""
        y = self.bn_ac_func2(self.bn_ac_func1(x))
        return F.concat([x, self.dropout_func(y) if self._drops else y], axis=1)


class _Transition(nn.Module):
    """Half the channels and half the size."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.conv_ac_func = _NormConv(inputs, inputs // 2, 1)
        self.pool2d_avg = nn.AvgPool2D(2, 2)

    def forward(self, x: Any) -> Any:
        """The features."""
        return self.pool2d_avg(self.conv_ac_func(x))


class DenseNet(nn.Module):
    """A net whose layers see the features of all before them in their block.

    Args:
        layers: 121, 161, 169, 201 or 264.
        bn_size: How many times the channels that a layer adds its first convolution has.
        dropout: Probability of dropout after each layer.
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(
        self, layers: int = 121, bn_size: int = 4, dropout: float = 0.0, num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if layers not in _LAYERS:
            raise ValueError(f"DenseNet: layers is {layers}; expected one of {', '.join(map(str, _LAYERS))}")
        self.num_classes, self.with_pool = num_classes, with_pool
        width, growth, blocks = _LAYERS[layers]
        self.conv1_func = _ConvNorm(3, width, 7, 2)
        self.pool2d_max = nn.MaxPool2D(3, 2, 1)
        self._stages = list[str]()
        for i, count in enumerate(blocks, 2):
            stage = nn.Sequential()
            for j in range(count):
                stage.add_module(f"conv{i}_{j + 1}", _Dense(width, growth, bn_size, dropout))
                width += growth
            self._add(f"db_conv_{i}", stage)
            if i <= len(blocks):
                self._add(f"tr_conv{i}_blk", _Transition(width))
                width //= 2
        self.batch_norm = nn.BatchNorm(width)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.out = nn.Linear(width, num_classes)

    def _add(self, name: str, part: Any) -> None:
        self.add_module(name, part)
        self._stages.append(name)

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.pool2d_max(self.conv1_func(x))
        for name in self._stages:
            x = getattr(self, name)(x)
        x = F.relu(self.batch_norm(x))
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.out(oprack.flatten(x, 1)) if self.num_classes > 0 else x


def _of_layers(layers: int) -> Any:
    def made(pretrained: bool = False, **kwargs: Any) -> DenseNet:
        without_download(f"densenet{layers}", pretrained)
        return DenseNet(layers=layers, **kwargs)

    made.__name__ = made.__qualname__ = f"densenet{layers}"
    made.__doc__ = f"DenseNet of {layers} layers."
    return made


densenet121, densenet161, densenet169 = _of_layers(121), _of_layers(161), _of_layers(169)
densenet201, densenet264 = _of_layers(201), _of_layers(264)


class _Conv(nn.Module):
    """A convolution that keeps the size."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self._conv = nn.Conv2D(inputs, outputs, size, stride, (size - 1) // 2, bias_attr=False)

    def forward(self, x: Any) -> Any:
        """The features."""
        return self._conv(x)


class _Inception(nn.Module):
    """Convolutions of three sizes and a pool, beside each other."""

    def __init__(self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self._conv1 = _Conv(inputs, one, 1)
        self._conv3r, self._conv3 = _Conv(inputs, three[0], 1), _Conv(three[0], three[1], 3)
        self._conv5r, self._conv5 = _Conv(inputs, five[0], 1), _Conv(five[0], five[1], 5)
        self._pool, self._convprj = nn.MaxPool2D(3, 1, 1), _Conv(inputs, pooled, 1)

    def forward(self, x: Any) -> Any:
        """The features."""
        ways = [self._conv1(x), self._conv3(self._conv3r(x)), self._conv5(self._conv5r(x))]
        return F.relu(F.concat([*ways, self._convprj(self._pool(x))], axis=1))


_INCEPTIONS = {
    "3a": (192, 64, (96, 128), (16, 32), 32), "3b": (256, 128, (128, 192), (32, 96), 64),
    "4a": (480, 192, (96, 208), (16, 48), 64), "4b": (512, 160, (112, 224), (24, 64), 64),
    "4c": (512, 128, (128, 256), (24, 64), 64), "4d": (512, 112, (144, 288), (32, 64), 64),
    "4e": (528, 256, (160, 320), (32, 128), 128), "5a": (832, 256, (160, 320), (32, 128), 128),
    "5b": (832, 384, (192, 384), (48, 128), 128),
}  # fmt: skip


class GoogLeNet(nn.Module):
    """The net of inceptions, with two more classifiers on the way.

    Args:
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self._conv, self._pool = _Conv(3, 64, 7, 2), nn.MaxPool2D(3, 2)
        self._conv_1, self._conv_2 = _Conv(64, 64, 1), _Conv(64, 192, 3)
        for name, widths in _INCEPTIONS.items():
            setattr(self, f"_ince{name}", _Inception(*widths))
        if with_pool:
            self._pool_5 = nn.AdaptiveAvgPool2D(1)
            self._pool_o1, self._pool_o2 = nn.AvgPool2D(5, 3), nn.AvgPool2D(5, 3)
        if num_classes > 0:
            self._drop, self._fc_out = nn.Dropout(0.4, mode="downscale_in_infer"), nn.Linear(1024, num_classes)
            for i, width in ((1, 512), (2, 528)):
                setattr(self, f"_conv_o{i}", _Conv(width, 128, 1))
                setattr(self, f"_fc_o{i}", nn.Linear(1152, 1024))
                setattr(self, f"_drop_o{i}", nn.Dropout(0.7, mode="downscale_in_infer"))
                setattr(self, f"_out{i}", nn.Linear(1024, num_classes))

    def forward(self, inputs: Any) -> Any:
        """The scores of classes, three times."""
        x = self._pool(self._conv_2(self._conv_1(self._pool(self._conv(inputs)))))
        x = self._pool(self._ince3b(self._ince3a(x)))
        first = self._ince4a(x)
        second = self._ince4d(self._ince4c(self._ince4b(first)))
        x = self._ince5b(self._ince5a(self._pool(self._ince4e(second))))
        found, sides = x, [first, second]
        if self.with_pool:
            found, sides = self._pool_5(x), [self._pool_o1(first), self._pool_o2(second)]
        if self.num_classes <= 0:
            return [found, *sides]
        return [
            self._fc_out(oprack.flatten(self._drop(found), 1)),
            *(self._side(i + 1, s) for i, s in enumerate(sides)),
        ]

    def _side(self, number: int, x: Any) -> Any:
        x = oprack.flatten(getattr(self, f"_conv_o{number}")(x), 1)
        x = getattr(self, f"_fc_o{number}")(x)
        x = getattr(self, f"_drop_o{number}")(F.relu(x) if number == 1 else x)  # Paddle has no activation in the second
        return getattr(self, f"_out{number}")(x)


def googlenet(pretrained: bool = False, **kwargs: Any) -> GoogLeNet:
    """The net of inceptions."""
    without_download("googlenet", pretrained)
    return GoogLeNet(**kwargs)
