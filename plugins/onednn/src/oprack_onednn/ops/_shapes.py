"""Shapes of convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence


def pads_of(
    algorithm: str, paddings: Sequence[int], spatial: Sequence[int], ksize: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """(before, after) per spatial dim."""
    if algorithm == "VALID":
        return [(0, 0)] * len(spatial)
    if algorithm == "SAME":
        total = [max((-(-x // s) - 1) * s + k - x, 0) for x, k, s in zip(spatial, ksize, strides, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    if len(paddings) == len(spatial):
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(len(spatial))]


def conv_out(size: int, k: int, pad: tuple[int, int], stride: int, dilation: int) -> int:
    """Results along one dim; -1 when the input's size is not known."""
    return -1 if size < 0 else (size + pad[0] + pad[1] - (dilation * (k - 1) + 1)) // stride + 1
