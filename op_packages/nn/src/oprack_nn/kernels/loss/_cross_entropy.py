"""Losses of probabilities by labels: logarithms, and the probability of a label."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule

from oprack_nn.kernels.loss._labels import class_indices, one_hot, with_axis

BOTH = ("cpu", "cuda")
# ln 0 counts as -1e20, so that a class with weight 0 adds 0 and not nan
_LOG_OF_ZERO = -1e20
# a sum of rounded terms may exceed 1 a little
_GREATEST = 1.01
_LEAST_LOSS = -np.log(_GREATEST)


def log(x: Array, xp: ArrayModule) -> Array:
    """ln x, at least -1e20."""
    return xp.maximum(xp.log(x), x.dtype.type(_LOG_OF_ZERO))


def require_probabilities(loss: Array, x: Array, op: str, xp: ArrayModule) -> None:
    """Raise InvalidArgumentError when a loss is NaN or negative because x holds no probabilities, but logits, say.

    On a device a look at the values would wait for it. NaN in x itself goes through.
    """
    if xp is np and loss.size and not loss.min() >= _LEAST_LOSS:
        wrong = x[(x < 0) | (x > _GREATEST)]
        if wrong.size:
            raise InvalidArgumentError(
                f"op {op}: X holds {float(wrong[0]):g}; expected probabilities, from 0 to 1, as Fluid's {op} takes "
                "them; for logits call softmax_with_cross_entropy or oprack.nn.CrossEntropyLoss(), or apply softmax "
                "first"
            )


def loss_shape(x: Array, label: Array) -> tuple[int, ...]:
    """One loss per row of x, in a dim of its own where the labels have one."""
    return (*x.shape[:-1], 1) if label.ndim == x.ndim else x.shape[:-1]


def pick(x: Array, label: Array, ignore_index: int, op: str, xp: ArrayModule) -> tuple[Array, ...]:
    """Probability of the label [..., 1] (1 where ignored), and index and mask of the labels."""
    index, counts = class_indices(with_axis(label, x, -1, xp), x.shape[-1], ignore_index, op, xp)
    if not x.shape[-1]:
        return xp.ones(index.shape, x.dtype), index, counts
    picked = xp.take_along_axis(x, index, axis=-1)
    return xp.where(counts, picked, x.dtype.type(1)), index, counts


def at_label(index: Array, counts: Array, classes: int, value: Array, xp: ArrayModule) -> Array:
    """Values [..., 1] in the labels' classes, 0 elsewhere also where the value is inf."""
    hits = one_hot(index, counts, classes, -1, bool, xp)
    return xp.where(hits, value, value.dtype.type(0))
