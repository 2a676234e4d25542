"""Losses, which saved nets have as outputs."""

from __future__ import annotations

import numpy as np
from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.expressions import Expr, constant, maybe, read, write
from oprack_onnx.export.graph import Call, exported


@exported("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy(call: Call) -> None:
    if call.has("pos_weight"):
        raise UnimplementedError("it weighs the positive ones")
    x, label = read(call), read(call, "Label")
    loss = x.maximum(0.0) - x * label + ((-abs(x)).exp() + 1.0).log()
    kept = ~label.equal(float(call.attr("ignore_index")))
    loss = kept.select(loss, 0)
    if call.attr("normalize"):
        loss = loss / kept.cast(x.dtype).sum().maximum(1e-6)
    write(call, loss)


def _cross_entropy(log: Expr, label: Expr, axis: int, ignored: int, rank: int, label_rank: int) -> Expr:
    """-log at the labels, with the axis of size 1; 0 where a label is ignored."""
    places = label.cast(VarType.INT64)
    if label_rank < rank:
        places = places.unsqueeze(axis)
    kept = ~places.equal(ignored)
    found = log.op("GatherElements", kept.select(places, 0), axis=axis)
    return kept.select(-found, 0)


@exported("softmax_with_cross_entropy")
def softmax_with_cross_entropy(call: Call) -> None:
    x, label, rank = read(call, "Logits"), read(call, "Label"), call.rank("Logits")
    axis = call.attr("axis") % rank
    soft = x.op("Softmax", axis=axis) if call.attr("use_softmax") else x.op("Identity")
    log = x.op("LogSoftmax", axis=axis) if call.attr("use_softmax") else x.log()
    if call.attr("soft_label"):
        loss = -((log * label).sum(axis, keep=True))
    else:
        loss = _cross_entropy(log, label, axis, call.attr("ignore_index"), rank, call.rank("Label"))
    write(call, soft, "Softmax")
    write(call, loss, "Loss")


@exported("cross_entropy", "cross_entropy2")
def cross_entropy(call: Call) -> None:
    x, label, rank = read(call), read(call, "Label"), call.rank()
    log = x.log().maximum(-1e20)
    if call.op.attr("soft_label"):
        loss = -((log * label).sum(-1, keep=True))
    else:
        loss = _cross_entropy(log, label, rank - 1, call.attr("ignore_index"), rank, call.rank("Label"))
        if call.rank("Label") < rank:
            loss = loss.squeeze(-1)
    if call.type == "cross_entropy2":
        write(call, (-loss).exp(), "MatchX")
    write(call, loss, "Y")


@exported("bce_loss")
def bce_loss(call: Call) -> None:
    x, label = read(call), read(call, "Label")
    logs = [v.log().maximum(-100.0) for v in (x, 1.0 - x)]
    write(call, -(logs[0] * label + logs[1] * (1.0 - label)))


@exported("log_loss")
def log_loss(call: Call) -> None:
    x, label, eps = read(call, "Predicted"), read(call, "Labels"), call.attr("epsilon")
    write(call, -(label * (x + eps).log()) - (1.0 - label) * (1.0 - x + eps).log(), "Loss")


@exported("hinge_loss")
def hinge_loss(call: Call) -> None:
    x, label = read(call, "Logits"), read(call, "Labels")
    write(call, (1.0 - x * (label * 2.0 - 1.0)).maximum(0.0), "Loss")


@exported("huber_loss")
def huber_loss(call: Call) -> None:
    rest, delta = read(call, "Y") - read(call), call.attr("delta")
    size = abs(rest)
    write(call, rest, "Residual")
    write(call, (size <= delta).select(rest * rest * 0.5, (size - 0.5 * delta) * delta))


@exported("kldiv_loss")
def kldiv_loss(call: Call) -> None:
    x, target = read(call), read(call, "Target")
    loss = (target > 0).select(target * (target.log() - x), 0)
    how = call.attr("reduction")
    if how == "batchmean":
        loss = loss.sum() / x.size(0).scalar().cast(x.dtype)
    elif how != "none":
        loss = loss.sum() if how == "sum" else loss.mean()
    write(call, loss, "Loss")


@exported("rank_loss")
def rank_loss(call: Call) -> None:
    gap = read(call, "Left") - read(call, "Right")
    write(call, (gap.exp() + 1.0).log() - read(call, "Label") * gap)


@exported("margin_rank_loss")
def margin_rank_loss(call: Call) -> None:
    loss = read(call, "Label") * -1.0 * (read(call, "X1") - read(call, "X2")) + call.attr("margin")
    write(call, (loss > 0).cast(loss.dtype), "Activated")
    write(call, loss.maximum(0.0))


@exported("smooth_l1_loss")
def smooth_l1_loss(call: Call) -> None:
    gap, sigma = read(call) - read(call, "Y"), call.attr("sigma") ** 2
    inside, outside = maybe(call, "InsideWeight"), maybe(call, "OutsideWeight")
    gap = gap if inside is None else gap * inside
    size = abs(gap)
    loss = (size < 1 / sigma).select(gap * gap * (0.5 * sigma), size - 0.5 / sigma)
    loss = loss if outside is None else loss * outside
    write(call, gap, "Diff")
    write(call, loss.sum(*range(1, call.rank()), keep=False).reshape(-1, 1))


@exported("squared_l2_distance")
def squared_l2_distance(call: Call) -> None:
    gap = read(call) - read(call, "Y")
    write(call, gap, "sub_result")
    write(call, (gap * gap).sum(*range(1, call.rank())).reshape(-1, 1))


@exported("modified_huber_loss")
def modified_huber_loss(call: Call) -> None:
    inner = read(call) * (read(call, "Y") * 2.0 - 1.0)
    flat = (1.0 - inner) * (1.0 - inner)
    write(call, inner, "IntermediateVal")
    write(call, (inner < -1.0).select(inner * -4.0, (inner < 1.0).select(flat, 0)))


@exported("label_smooth")
def label_smooth(call: Call) -> None:
    x, eps, prior = read(call), call.attr("epsilon"), maybe(call, "PriorDist")
    size = call.dims()[-1]
    if size < 0 and prior is None:
        raise UnimplementedError("the number of classes is not known")
    write(call, x * (1 - eps) + (eps / size if prior is None else prior * eps))


@exported("nll_loss")
def nll_loss(call: Call) -> None:
    x, label, weight = read(call), read(call, "Label").cast(VarType.INT64), maybe(call, "Weight")
    ignored, how = call.attr("ignore_index"), call.attr("reduction")
    kept = ~label.equal(ignored)
    safe = kept.select(label, 0)
    found = -x.op("GatherElements", safe.unsqueeze(1), axis=1).squeeze(1)
    ones = kept.cast(x.dtype)
    weights = ones if weight is None else weight.gather(safe) * ones
    total = weights.sum()
    loss = found * weights
    if how != "none":
        loss = loss.sum() / total if how == "mean" else loss.sum()
    else:
        total = total * 0.0
    write(call, loss)
    write(call, total, "Total_weight")


@exported("sigmoid_focal_loss")
def sigmoid_focal_loss(call: Call) -> None:
    x, label, number = read(call), read(call, "Label"), read(call, "FgNum")
    gamma, alpha, classes = call.attr("gamma"), call.attr("alpha"), call.dims()[-1]
    own = constant(call.graph, np.arange(1, classes + 1)[None]).equal(label.cast(VarType.INT64))
    other = ~own & (label.cast(VarType.INT64) > -1)
    fg = number.cast(x.dtype).maximum(1.0)
    p = x.sigmoid()
    positive = own.select((1.0 - p) ** gamma * p.maximum(1.175494e-38).log() * (-alpha), 0)
    soft = x.maximum(0.0) + ((-abs(x)).exp() + 1.0).log()
    negative = other.select(p**gamma * soft * (1 - alpha), 0)
    write(call, (positive + negative) / fg)
