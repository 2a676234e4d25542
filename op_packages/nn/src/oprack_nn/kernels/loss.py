"""Kernels of losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import sigmoid, softplus


# labels ---------------------------------------------------------------------------------------------------------------
# Hard labels: their check, and their conversion to indices and one-hot masks.
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


# cross entropy --------------------------------------------------------------------------------------------------------
# Losses of probabilities by labels: logarithms, and the probability of a label.
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


# bce_loss -------------------------------------------------------------------------------------------------------------
@kernel("bce_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def bce_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    one, floor = X.dtype.type(1), X.dtype.type(-100)
    hit = xp.maximum(xp.log(X), floor)
    miss = xp.maximum(xp.log(one - X), floor)
    return (Label - one) * miss - Label * hit


@kernel("bce_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def bce_loss_grad(X: Array, Label: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return Out_grad * (X - Label) / xp.maximum((kind(1) - X) * X, kind(1e-12))


# bpr_loss -------------------------------------------------------------------------------------------------------------
_NEVER_IGNORED = -1


def _gaps(x: Array, label: Array, op: str, xp: ArrayModule) -> tuple[Array, Array]:
    """X_j - X_label, and the one-hot labels."""
    index, counts = class_indices(with_axis(label, x, -1, xp), x.shape[-1], _NEVER_IGNORED, op, xp)
    return x - xp.take_along_axis(x, index, axis=-1), one_hot(index, counts, x.shape[-1], -1, x.dtype, xp)


@kernel("bpr_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def bpr_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    gaps, hot = _gaps(X, Label, "bpr_loss", xp)
    return (softplus(gaps, xp) * (1 - hot)).sum(axis=-1, keepdims=True) / X.dtype.type(X.shape[-1] - 1)


@kernel("bpr_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def bpr_loss_grad(X: Array, Label: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    gaps, hot = _gaps(X, Label, "bpr_loss_grad", xp)
    slope = sigmoid(gaps, xp) * (1 - hot)
    slope -= hot * slope.sum(axis=-1, keepdims=True)
    return slope * (Y_grad.reshape(*X.shape[:-1], 1) / X.dtype.type(X.shape[-1] - 1))


# center_loss ----------------------------------------------------------------------------------------------------------
@kernel("center_loss", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def center_loss(
    X: Array, Label: Array, Centers: Array, CenterUpdateRate: Array, *, need_update: bool, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """A row's distance from its centre, and the step of the centres."""
    index, _ = class_indices(Label.reshape(-1), len(Centers), -1, "center_loss", xp)
    diff = X - Centers[index]
    loss = (diff * diff).sum(axis=1, keepdims=True) / 2
    centers = Centers.copy()
    if need_update:
        step, count = xp.zeros_like(Centers), xp.ones((len(Centers), 1), Centers.dtype)
        xp.add.at(step, index, diff)
        xp.add.at(count, index, count.dtype.type(1))
        centers += CenterUpdateRate.reshape(-1)[0] * step / count
    return centers, diff, loss


@kernel("center_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def center_loss_grad(SampleCenterDiff: Array, Loss_grad: Array) -> Array:
    """One product."""
    return SampleCenterDiff * Loss_grad.reshape(-1, 1)


# cos_sim --------------------------------------------------------------------------------------------------------------
def _rows(x: Array) -> Array:
    return x.reshape(x.shape[0], -1) if x.size else x.reshape(x.shape[0], 0)


def _norm(rows: Array, xp: ArrayModule) -> Array:
    return xp.sqrt((rows * rows).sum(axis=1, keepdims=True))


@kernel("cos_sim", place=("cpu", "cuda"), dtypes=FLOATS)
def cos_sim(X: Array, Y: Array, *, xp: ArrayModule) -> tuple[Array, ...]:
    x, y = _rows(X), _rows(Y)
    x_norm, y_norm = _norm(x, xp), _norm(y, xp)
    return (x * y).sum(axis=1, keepdims=True) / (x_norm * y_norm), x_norm, y_norm


@kernel("cos_sim_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def cos_sim_grad(
    X: Array, Y: Array, XNorm: Array, YNorm: Array, Out: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array | None]:
    x, y = _rows(X), _rows(Y)
    scale = Out_grad / (XNorm * YNorm)
    dx = dy = None
    if ctx.wants("X@GRAD"):
        dx = (scale * y - Out_grad * Out / (XNorm * XNorm) * x).reshape(X.shape)
    if ctx.wants("Y@GRAD"):
        dy = scale * x - Out_grad * Out / (YNorm * YNorm) * y
        dy = (dy if len(y) == len(x) else dy.sum(axis=0)).reshape(Y.shape)
    return {"X@GRAD": dx, "Y@GRAD": dy}


# cross_entropy --------------------------------------------------------------------------------------------------------
@kernel("cross_entropy", place=BOTH, dtypes=FLOATS)
def cross_entropy(X: Array, Label: Array, *, soft_label: bool, ignore_index: int, xp: ArrayModule) -> Array:
    if soft_label:
        loss = -(Label * log(X, xp)).sum(axis=-1, keepdims=True)
    else:
        picked, _, _ = pick(X, Label, ignore_index, "cross_entropy", xp)
        loss = (-log(picked, xp)).reshape(loss_shape(X, Label))
    require_probabilities(loss, X, "cross_entropy", xp)
    return loss


@kernel("cross_entropy_grad", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad(
    X: Array, Label: Array, Y_grad: Array, *, soft_label: bool, ignore_index: int, xp: ArrayModule
) -> Array:
    dy = Y_grad.reshape(*X.shape[:-1], 1)
    if soft_label:
        return -dy * Label / X
    picked, index, counts = pick(X, Label, ignore_index, "cross_entropy_grad", xp)
    return at_label(index, counts, X.shape[-1], -dy / picked, xp)


# cross_entropy2 -------------------------------------------------------------------------------------------------------
@kernel("cross_entropy2", place=BOTH, dtypes=FLOATS)
def cross_entropy2(X: Array, Label: Array, *, ignore_index: int, xp: ArrayModule) -> tuple[Array, ...]:
    picked, _, counts = pick(X, Label, ignore_index, "cross_entropy2", xp)
    shape = loss_shape(X, Label)
    loss = (-log(picked, xp)).reshape(shape)
    require_probabilities(loss, X, "cross_entropy2", xp)
    return loss, xp.empty((*X.shape, 0), X.dtype), (picked * counts).reshape(shape)


@kernel("cross_entropy_grad2", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad2(
    Y_grad: Array, MatchX: Array, Label: Array, XShape: ShapeOnly, *, ignore_index: int, xp: ArrayModule
) -> Array:
    shape = XShape.shape[:-1]
    column = (*shape[:-1], 1)
    index, counts = class_indices(Label.reshape(column), shape[-1], ignore_index, "cross_entropy_grad2", xp)
    return at_label(index, counts, shape[-1], -Y_grad.reshape(column) / MatchX.reshape(column), xp)


# fsp ------------------------------------------------------------------------------------------------------------------


def _planes(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h * w)


@kernel("fsp", place=BOTH, dtypes=FLOATS)
def fsp(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    x, y = _planes(X), _planes(Y)
    return xp.matmul(x, y.transpose(0, 2, 1)) / X.dtype.type(max(x.shape[2], 1))


@kernel("fsp_grad", place=BOTH, dtypes=FLOATS)
def fsp_grad(X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array | None]:
    share = Out_grad / X.dtype.type(max(X.shape[2] * X.shape[3], 1))
    dx = xp.matmul(share, _planes(Y)).reshape(X.shape) if ctx.wants("X@GRAD") else None
    dy = xp.matmul(share.transpose(0, 2, 1), _planes(X)).reshape(Y.shape) if ctx.wants("Y@GRAD") else None
    return {"X@GRAD": dx, "Y@GRAD": dy}


# hinge_loss -----------------------------------------------------------------------------------------------------------
@kernel("hinge_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def hinge_loss(Logits: Array, Labels: Array, *, xp: ArrayModule) -> Array:
    kind = Logits.dtype.type
    return xp.maximum(kind(1) - (kind(2) * Labels - kind(1)) * Logits, kind(0))


@kernel("hinge_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def hinge_loss_grad(Logits: Array, Labels: Array, Loss_grad: Array, *, xp: ArrayModule) -> Array:
    kind = Logits.dtype.type
    sign = kind(2) * Labels - kind(1)
    return xp.where(sign * Logits < 1, -sign * Loss_grad, kind(0))


# huber_loss -----------------------------------------------------------------------------------------------------------
@kernel("huber_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss(X: Array, Y: Array, *, delta: float, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X.dtype.type
    residual = Y - X
    size = abs(residual)
    loss = xp.where(size <= delta, kind(0.5) * size * size, kind(delta) * (size - kind(0.5 * delta)))
    return loss, residual


@kernel("huber_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def huber_loss_grad(
    Residual: Array, Out_grad: Array, *, delta: float, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | None]:
    kind = Residual.dtype.type
    slope = xp.minimum(xp.maximum(Residual, kind(-delta)), kind(delta))
    return {
        "X@GRAD": -slope * Out_grad if ctx.wants("X@GRAD") else None,
        "Y@GRAD": slope * Out_grad if ctx.wants("Y@GRAD") else None,
    }


# identity_loss --------------------------------------------------------------------------------------------------------
@kernel("identity_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def identity_loss(X: Array, *, reduction: int) -> Array:
    if reduction == 2:
        return X.copy()
    total = X.sum()
    return total if reduction == 0 else total / X.dtype.type(X.size)


@kernel("identity_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def identity_loss_grad(X: ShapeOnly, Out_grad: Array, *, reduction: int, xp: ArrayModule) -> Array:
    if reduction == 2:
        return Out_grad.copy()
    share = Out_grad if reduction == 0 else Out_grad / X.dtype.type(max(X.size, 1))
    return xp.full(X.shape, share.reshape(()), X.dtype)


# kldiv_loss -----------------------------------------------------------------------------------------------------------
def _divisor(x: Array | ShapeOnly, reduction: str) -> int:
    """What the sum of the losses is divided by."""
    if reduction == "batchmean":
        return x.shape[0] if x.ndim else 1
    return x.size if reduction == "mean" else 1


@kernel("kldiv_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def kldiv_loss(X: Array, Target: Array, *, reduction: str, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    positive = Target > 0
    loss = xp.where(positive, Target * (xp.log(xp.where(positive, Target, kind(1))) - X), kind(0))
    if reduction == "none":
        return loss
    return loss.sum() / kind(max(_divisor(X, reduction), 1))


@kernel("kldiv_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def kldiv_loss_grad(X: ShapeOnly, Target: Array, Loss_grad: Array, *, reduction: str, xp: ArrayModule) -> Array:
    kind = Target.dtype.type
    dx = xp.where(Target > 0, -Target, kind(0)) * Loss_grad.reshape(X.shape if reduction == "none" else ())
    return dx / kind(max(_divisor(X, reduction), 1))


# label_smooth ---------------------------------------------------------------------------------------------------------
@kernel("label_smooth", place=("cpu", "cuda"), dtypes=FLOATS)
def label_smooth(X: Array, PriorDist: Array | None = None, *, epsilon: float) -> Array:
    kind = X.dtype.type
    if PriorDist is None:
        prior = kind(epsilon / X.shape[-1])
    else:
        prior = kind(epsilon) * PriorDist.reshape(X.shape[-1])
    return kind(1 - epsilon) * X + prior


@kernel("label_smooth_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def label_smooth_grad(Out_grad: Array, *, epsilon: float) -> Array:
    return Out_grad * Out_grad.dtype.type(1 - epsilon)


# log_loss -------------------------------------------------------------------------------------------------------------
@kernel("log_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def log_loss(Predicted: Array, Labels: Array, *, epsilon: float, xp: ArrayModule) -> Array:
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return (Labels - one) * xp.log(one - Predicted + eps) - Labels * xp.log(Predicted + eps)


@kernel("log_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def log_loss_grad(Predicted: Array, Labels: Array, Loss_grad: Array, *, epsilon: float) -> Array:
    kind = Predicted.dtype.type
    one, eps = kind(1), kind(epsilon)
    return Loss_grad * ((one - Labels) / (one - Predicted + eps) - Labels / (Predicted + eps))


# margin_rank_loss -----------------------------------------------------------------------------------------------------
@kernel("margin_rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss(X1: Array, X2: Array, Label: Array, *, margin: float, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X1.dtype.type
    loss = xp.maximum(kind(margin) - Label * (X1 - X2), kind(0))
    return (loss > 0).astype(X1.dtype), loss


@kernel("margin_rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def margin_rank_loss_grad(
    Activated: Array, Label: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array | None]:
    dx2 = Out_grad * Activated * Label
    return {"X1@GRAD": -dx2 if ctx.wants("X1@GRAD") else None, "X2@GRAD": dx2}


# modified_huber_loss --------------------------------------------------------------------------------------------------
@kernel("modified_huber_loss", place=BOTH, dtypes=FLOATS)
def modified_huber_loss(X: Array, Y: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    kind = X.dtype.type
    z = (kind(2) * Y - kind(1)) * X
    gap = xp.maximum(kind(1) - z, kind(0))
    return z, xp.where(z < -1, kind(-4) * z, gap * gap)


@kernel("modified_huber_loss_grad", place=BOTH, dtypes=FLOATS)
def modified_huber_loss_grad(Y: Array, IntermediateVal: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    kind = IntermediateVal.dtype.type
    slope = kind(-2) * xp.minimum(xp.maximum(kind(1) - IntermediateVal, kind(0)), kind(2))
    return slope * (kind(2) * Y - kind(1)) * Out_grad


# rank_loss ------------------------------------------------------------------------------------------------------------
@kernel("rank_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss(Label: Array, Left: Array, Right: Array, *, xp: ArrayModule) -> Array:
    gap = Left - Right
    return softplus(gap, xp) - Label * gap


@kernel("rank_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def rank_loss_grad(
    Label: Array, Left: Array, Right: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array]:
    dleft = Out_grad * (sigmoid(Left - Right, xp) - Label)
    return {"Left@GRAD": dleft, "Right@GRAD": -dleft if ctx.wants("Right@GRAD") else None}


# squared_l2_distance --------------------------------------------------------------------------------------------------
@kernel("squared_l2_distance", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance(X: Array, Y: Array) -> tuple[Array, Array]:
    size = math.prod(X.shape[1:])
    diff = X.reshape(len(X), size) - Y.reshape(len(Y), size)
    return diff, (diff * diff).sum(axis=1, keepdims=True)


@kernel("squared_l2_distance_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def squared_l2_distance_grad(
    X: ShapeOnly, Y: ShapeOnly, sub_result: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array]:
    dx = sub_result * (Out_grad.reshape(-1, 1) * sub_result.dtype.type(2))
    dy = None
    if ctx.wants("Y@GRAD"):
        dy = (-dx if Y.shape[0] == X.shape[0] else -dx.sum(axis=0)).reshape(Y.shape)
    return {"X@GRAD": dx.reshape(X.shape), "Y@GRAD": dy}


# teacher_student_sigmoid_loss -----------------------------------------------------------------------------------------
def _terms(label: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """How often log(1 + e^X) counts, and the factor of X that is taken off."""
    kind = label.dtype.type
    alone = label < 0
    click = xp.where(label < -1, kind(0), kind(1))
    return xp.where(alone, kind(1), kind(2)), xp.where(alone, click, label)


@kernel("teacher_student_sigmoid_loss", place=BOTH, dtypes=FLOATS)
def teacher_student_sigmoid_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    count, factor = _terms(Label, xp)
    return count * (xp.maximum(X, 0) + xp.log1p(xp.exp(-abs(X)))) - factor * X


@kernel("teacher_student_sigmoid_loss_grad", place=BOTH, dtypes=FLOATS)
def teacher_student_sigmoid_loss_grad(
    X: Array,
    Label: Array,
    Y_grad: Array,
    *,
    soft_max_up_bound: float,
    soft_max_lower_bound: float,
    xp: ArrayModule,
) -> Array:
    kind = X.dtype.type
    count, factor = _terms(Label, xp)
    near = xp.minimum(xp.maximum(X, kind(soft_max_lower_bound)), kind(soft_max_up_bound))
    slope = count / (kind(1) + xp.exp(-near)) - factor
    inside = (X > soft_max_lower_bound) & (X < soft_max_up_bound)
    return xp.where(inside, slope * Y_grad, kind(0))
