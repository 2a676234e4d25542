"""paddle.vision.models: Inception, third (Szegedy et al., 2016). Parameters have the names that Paddle's have."""

from __future__ import annotations

from functools import partial
from typing import Any

import oprack
from oprack import functional as F
from oprack import nn

from oprack_paddle.pictures.blocks import conv_norm
from oprack_paddle.pictures.weights import without_download

_conv = partial(conv_norm, act=nn.ReLU, padding=0)
_long = partial(conv_norm, act=nn.ReLU)  # keeps the size


class _Ways(nn.Module):
    """Ways beside each other, whose features are joined; `ways` has the names of the parts of each."""

    ways: tuple[tuple[str, ...], ...] = ()

    def forward(self, x: Any) -> Any:
        """The features."""
        found = []
        for way in self.ways:
            y = x
            for name in way:
                y = getattr(self, name)(y)
            found.append(y)
        return F.concat(found, axis=1)

    def _pool(self, inputs: int, outputs: int) -> None:
        self.branch_pool = nn.AvgPool2D(3, 1, 1, exclusive=False)
        self.branch_pool_conv = _conv(inputs, outputs, 1)


_DOUBLE = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
_POOL = ("branch_pool", "branch_pool_conv")


class _Small(_Ways):
    """Sizes 1, 5 and twice 3."""

    ways = (("branch1x1",), ("branch5x5_1", "branch5x5_2"), _DOUBLE, _POOL)

    def __init__(self, inputs: int, pooled: int) -> None:
        super().__init__()
        self.branch1x1 = _conv(inputs, 64, 1)
        self.branch5x5_1, self.branch5x5_2 = _conv(inputs, 48, 1), _long(48, 64, 5)
        self.branch3x3dbl_1, self.branch3x3dbl_2 = _conv(inputs, 64, 1), _long(64, 96, 3)
        self.branch3x3dbl_3 = _long(96, 96, 3)
        self._pool(inputs, pooled)


class _Halved(_Ways):
    """Half the size."""

    ways = (("branch3x3",), _DOUBLE, ("branch_pool",))

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3 = _conv(inputs, 384, 3, 2)
        self.branch3x3dbl_1, self.branch3x3dbl_2 = _conv(inputs, 64, 1), _long(64, 96, 3)
        self.branch3x3dbl_3 = _conv(96, 96, 3, 2)
        self.branch_pool = nn.MaxPool2D(3, 2)


class _Wide(_Ways):
    """Size 7, one dim after the other."""

    ways = (
        ("branch1x1",),
        ("branch7x7_1", "branch7x7_2", "branch7x7_3"),
        tuple(f"branch7x7dbl_{i}" for i in range(1, 6)),
        _POOL,
    )

    def __init__(self, inputs: int, middle: int) -> None:
        super().__init__()
        row, column = (1, 7), (7, 1)
        self.branch1x1 = _conv(inputs, 192, 1)
        self.branch7x7_1 = _conv(inputs, middle, 1)
        self.branch7x7_2, self.branch7x7_3 = _long(middle, middle, row), _long(middle, 192, column)
        self.branch7x7dbl_1 = _conv(inputs, middle, 1)
        self.branch7x7dbl_2, self.branch7x7dbl_3 = _long(middle, middle, column), _long(middle, middle, row)
        self.branch7x7dbl_4, self.branch7x7dbl_5 = _long(middle, middle, column), _long(middle, 192, row)
        self._pool(inputs, 192)


class _HalvedAgain(_Ways):
    """Half the size, after size 7."""

    ways = (("branch3x3_1", "branch3x3_2"), tuple(f"branch7x7x3_{i}" for i in range(1, 5)), ("branch_pool",))

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3_1, self.branch3x3_2 = _conv(inputs, 192, 1), _conv(192, 320, 3, 2)
        self.branch7x7x3_1, self.branch7x7x3_2 = _conv(inputs, 192, 1), _long(192, 192, (1, 7))
        self.branch7x7x3_3, self.branch7x7x3_4 = _long(192, 192, (7, 1)), _conv(192, 192, 3, 2)
        self.branch_pool = nn.MaxPool2D(3, 2)


class _Split(_Ways):
    """Ways that part once more."""

    ways = (
        ("branch1x1",),
        ("branch3x3_1", "branch3x3_2a"),
        ("branch3x3_1", "branch3x3_2b"),
        ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3a"),
        ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3b"),
        _POOL,
    )

    def __init__(self, inputs: int) -> None:
        super().__init__()
        row, column = (1, 3), (3, 1)
        self.branch1x1, self.branch3x3_1 = _conv(inputs, 320, 1), _conv(inputs, 384, 1)
        self.branch3x3_2a, self.branch3x3_2b = _long(384, 384, row), _long(384, 384, column)
        self.branch3x3dbl_1, self.branch3x3dbl_2 = _conv(inputs, 448, 1), _long(448, 384, 3)
        self.branch3x3dbl_3a, self.branch3x3dbl_3b = _long(384, 384, row), _long(384, 384, column)
        self._pool(inputs, 192)


class _Stem(nn.Module):
    """An eighth of the size, and 192 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1a_3x3, self.conv_2a_3x3 = _conv(3, 32, 3, 2), _conv(32, 32, 3)
        self.conv_2b_3x3, self.max_pool = _long(32, 64, 3), nn.MaxPool2D(3, 2)
        self.conv_3b_1x1, self.conv_4a_3x3 = _conv(64, 80, 1), _conv(80, 192, 3)

    def forward(self, x: Any) -> Any:
        """The features."""
        x = self.max_pool(self.conv_2b_3x3(self.conv_2a_3x3(self.conv_1a_3x3(x))))
        return self.max_pool(self.conv_4a_3x3(self.conv_3b_1x1(x)))


class InceptionV3(nn.Module):
    """The third Inception, for pictures of 299 times 299.

    Args:
        num_classes: The number of classes; 0 or less: features come out.
        with_pool: Whether features are averaged over the picture.
    """

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inception_stem = _Stem()
        blocks = [*map(_Small, (192, 256, 288), (32, 64, 64)), _Halved(288)]
        blocks += [*(_Wide(768, middle) for middle in (128, 160, 160, 192)), _HalvedAgain(768)]
        self.inception_block_list = nn.LayerList([*blocks, _Split(1280), _Split(2048)])
        if with_pool:
            self.avg_pool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.dropout, self.fc = nn.Dropout(0.2, mode="downscale_in_infer"), nn.Linear(2048, num_classes)

    def forward(self, x: Any) -> Any:
        """The scores of classes."""
        x = self.inception_stem(x)
        for block in self.inception_block_list:
            x = block(x)
        x = self.avg_pool(x) if self.with_pool else x
        return self.fc(self.dropout(oprack.flatten(x, 1))) if self.num_classes > 0 else x


def inception_v3(pretrained: bool = False, **kwargs: Any) -> InceptionV3:
    """The third Inception."""
    without_download("inception_v3", pretrained)
    return InceptionV3(**kwargs)
