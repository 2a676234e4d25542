"""Checks of indices, which come from feeds."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule


def check_index(op: str, slot: str, index: Array, size: int, xp: ArrayModule, low: int = 0) -> None:
    """Raise InvalidArgumentError unless low <= index < size everywhere; not on a device, where looking would wait."""
    if xp is not np or not index.size:
        return
    least, most = int(index.min()), int(index.max())
    if least < low or most >= size:
        raise InvalidArgumentError(
            f"op {op}: {slot} has values from {least} to {most}; expected {low} <= value < {size}"
        )


def columns(index: Array) -> tuple[Array, ...]:
    """The last dim of an index of shape [..., k] as a tuple of k arrays."""
    return tuple(index[..., i] for i in range(index.shape[-1]))


def add_rows(target: Array, index: Array, updates: Array, xp: ArrayModule) -> None:
    """target[index[i]] += updates[i] for each row i of an index of shape [..., k]; k = 0 means all of target."""
    if index.shape[-1]:
        xp.add.at(target, columns(index), updates)
    else:
        target += updates.reshape(-1, *target.shape).sum(axis=0)


def grid(index: Array, axis: int, xp: ArrayModule) -> tuple[Array, ...]:
    """Indices by which element i of `index` picks along `axis` and stays in place along the other dims."""
    places = list(xp.ogrid[tuple(slice(n) for n in index.shape)])
    places[axis] = index
    return tuple(places)
