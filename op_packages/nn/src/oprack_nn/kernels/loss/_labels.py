"""Hard labels: their check, and their conversion to indices and one-hot masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule


def class_indices(label: Array, classes: int, ignore_index: int, op: str, xp: ArrayModule) -> tuple[Array, Array]:
    """(indices as int64 in [0, classes), mask of the labels that count).

    Raises InvalidArgumentError when a label is neither a class nor ignore_index. On a device such a label is ignored,
    since reading it would mean waiting for the device.
    """
    index = label.astype("int64")
    inside = (index >= 0) & (index < classes)
    counts = inside & (index != ignore_index)
    if xp is np:
        wrong = ~inside & (index != ignore_index)
        if wrong.any():
            raise InvalidArgumentError(
                f"op {op}: Label holds {int(index[wrong][0])}; expected a class in [0, {classes}) or ignore_index "
                f"{ignore_index}; check the labels against the number of classes"
            )
    return xp.where(counts, index, 0), counts


def with_axis(label: Array, x: Array, axis: int, xp: ArrayModule) -> Array:
    """Labels with a dim of size 1 in the place of x's class dim."""
    return label if label.ndim == x.ndim else xp.expand_dims(label, axis)


def one_hot(
    index: Array, counts: Array, classes: int, axis: int, dtype: np.dtype[Any] | type[Any], xp: ArrayModule
) -> Array:
    """1 at `index` along `axis` where `counts` is true, 0 elsewhere; index and counts have size 1 along `axis`."""
    shape = [1] * index.ndim
    shape[axis] = classes
    hit = (index == xp.arange(classes).reshape(shape)) & counts
    return hit.astype(dtype)
