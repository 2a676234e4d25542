"""Kernels of cross_entropy and cross_entropy2."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._labels import class_indices, one_hot, with_axis

BOTH = ("cpu", "cuda")
# ln 0 counts as -1e20, so that a class with weight 0 adds 0 and not nan
_LOG_OF_ZERO = -1e20
# a sum of rounded terms may exceed 1 a little
_GREATEST = 1.01
_LEAST_LOSS = -np.log(_GREATEST)


def _log(x, xp):
    return xp.maximum(xp.log(x), x.dtype.type(_LOG_OF_ZERO))


def _require_probabilities(loss, x, op, xp):
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


def _loss_shape(x, label):
    return (*x.shape[:-1], 1) if label.ndim == x.ndim else x.shape[:-1]


def _pick(x, label, ignore_index, op, xp):
    """Probability of the label [..., 1] (1 where ignored), and index and mask of the labels."""
    index, counts = class_indices(with_axis(label, x, -1, xp), x.shape[-1], ignore_index, op, xp)
    if not x.shape[-1]:
        return xp.ones(index.shape, x.dtype), index, counts
    picked = xp.take_along_axis(x, index, axis=-1)
    return xp.where(counts, picked, x.dtype.type(1)), index, counts


def _at_label(index, counts, classes, value, xp):
    """Values [..., 1] in the labels' classes, 0 elsewhere also where the value is inf."""
    hits = one_hot(index, counts, classes, -1, bool, xp)
    return xp.where(hits, value, value.dtype.type(0))


@kernel("cross_entropy", place=BOTH, dtypes=FLOATS)
def cross_entropy(X, Label, *, soft_label, ignore_index, xp):
    if soft_label:
        loss = -(Label * _log(X, xp)).sum(axis=-1, keepdims=True)
    else:
        picked, _, _ = _pick(X, Label, ignore_index, "cross_entropy", xp)
        loss = (-_log(picked, xp)).reshape(_loss_shape(X, Label))
    _require_probabilities(loss, X, "cross_entropy", xp)
    return loss


@kernel("cross_entropy_grad", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad(X, Label, Y_grad, *, soft_label, ignore_index, xp):
    dy = Y_grad.reshape(*X.shape[:-1], 1)
    if soft_label:
        return -dy * Label / X
    picked, index, counts = _pick(X, Label, ignore_index, "cross_entropy_grad", xp)
    return _at_label(index, counts, X.shape[-1], -dy / picked, xp)


@kernel("cross_entropy2", place=BOTH, dtypes=FLOATS)
def cross_entropy2(X, Label, *, ignore_index, xp):
    picked, _, counts = _pick(X, Label, ignore_index, "cross_entropy2", xp)
    shape = _loss_shape(X, Label)
    loss = (-_log(picked, xp)).reshape(shape)
    _require_probabilities(loss, X, "cross_entropy2", xp)
    return loss, xp.empty((*X.shape, 0), X.dtype), (picked * counts).reshape(shape)


@kernel("cross_entropy_grad2", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad2(Y_grad, MatchX, Label, XShape, *, ignore_index, xp):
    shape = XShape.shape[:-1]
    column = (*shape[:-1], 1)
    index, counts = class_indices(Label.reshape(column), shape[-1], ignore_index, "cross_entropy_grad2", xp)
    return _at_label(index, counts, shape[-1], -Y_grad.reshape(column) / MatchX.reshape(column), xp)
