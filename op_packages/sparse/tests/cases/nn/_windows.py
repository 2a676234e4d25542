"""Convolutions and maxima over dense volumes, place by place, as the formulas say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def windows(
    space: tuple[int, ...], sizes: list[int], paddings: list[int], strides: list[int], dilations: list[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(window, place in it, point) for every point that a window meets."""
    rules = list(zip(space, sizes, paddings, strides, dilations, strict=True))
    count = tuple((d + 2 * p - e * (k - 1) - 1) // s + 1 for d, k, p, s, e in rules)
    for window in np.ndindex(count):
        for place in np.ndindex(tuple(sizes)):
            point = tuple(o * s - p + k * e for o, k, (_, _, p, s, e) in zip(window, place, rules, strict=True))
            if all(0 <= i < d for i, d in zip(point, space, strict=True)):
                yield window, place, point
