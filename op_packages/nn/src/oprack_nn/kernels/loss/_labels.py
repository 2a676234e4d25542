"""Hard labels: checked, and used to pick one class per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule


def class_indices(label: Array, classes: int, ignore_index: int, op: str, xp: ArrayModule) -> tuple[Array, Array]:
    """(indices as int64 in [0, classes), mask of the labels that count).

    Raises InvalidArgumentError when a label is neither a class nor ignore_index; on a device, where a look at the
    values would wait for it, such a label is ignored.
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
    """Labels with a dim of 1 where x has its classes."""
    return label if label.ndim == x.ndim else xp.expand_dims(label, axis)


def one_hot(
    index: Array, counts: Array, classes: int, axis: int, dtype: np.dtype[Any] | type[Any], xp: ArrayModule
) -> Array:
    """Ones at `index` along `axis`, where `counts`; index and counts have 1 there."""
    shape = [1] * index.ndim
    shape[axis] = classes
    hit = (index == xp.arange(classes).reshape(shape)) & counts
    return hit.astype(dtype)
