"""What several nets of paddle.vision.models are made of."""

from __future__ import annotations

from typing import Any

from oprack import nn


def conv_norm(
    inputs: int,
    outputs: int,
    size: int | tuple[int, int],
    stride: int = 1,
    groups: int = 1,
    act: Any = None,
    padding: int | None = None,
    **norm: float,
) -> Any:
    """A convolution, a norm and, where one is given, an activation.

    padding: Default: as much as keeps the size. norm: Settings of the norm.
    """
    around = tuple((n - 1) // 2 for n in ((size, size) if isinstance(size, int) else size))
    layers = [
        nn.Conv2D(
            inputs, outputs, size, stride, around if padding is None else padding, groups=groups, bias_attr=False
        ),
        nn.BatchNorm2D(outputs, **norm),
    ]
    return nn.Sequential(*layers, *([] if act is None else [act()]))


def divisible(value: float, by: int = 8) -> int:
    """The nearest multiple of a number that is not less than nine tenths of a value."""
    found = max(by, int(value + by / 2) // by * by)
    return found + by if found < 0.9 * value else found
