"""Strides of arrays: which elements lie where, and as oneDNN counts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np


class NotServedError(Exception):
    """oneDNN has no fast implementation for these shapes; the caller runs the NumPy kernel."""


Footprint: TypeAlias = "tuple[tuple[int, int], ...]"
"""Which elements there are from an address on: (count, distance in bytes) of dims, innermost first, joined where they
follow on each other. Two layouts with one footprint have the same elements, whatever the order of their dims."""


def footprint(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Footprint:
    """The footprint of an array. strides: in bytes."""
    if 0 in shape:
        return ((0, itemsize),)
    found: list[tuple[int, int]] = []
    for stride, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1 and s):
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * n, found[-1][1])
        else:
            found.append((n, stride))
    return tuple(found)


def reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Bytes from the first element to the end of the last one behind it. strides: in bytes."""
    if 0 in shape:
        return 0
    return itemsize + sum((n - 1) * max(s, 0) for n, s in zip(shape, strides, strict=True))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements; those of dims of size 1 as in a row-major array, since they mean nothing."""
    size = array.itemsize
    found = []
    step = 1
    for n, s in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if n == 1:
            s = step * size
        if s <= 0 or s % size:
            raise NotServedError(f"strides {array.strides}")
        found.append(s // size)
        step = found[-1] * n
    return tuple(reversed(found))
