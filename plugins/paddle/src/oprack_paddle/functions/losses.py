"""Losses with Paddle's parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
import oprack.nn.functional as NF
from oprack import functional as F

from oprack_paddle.functions._tools import reduced
from oprack_paddle.functions.statistics import p_norm

Tensor = Any


def soft_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: Any = None) -> Tensor:
    """The logarithm of 1 + exp(-label * input)."""
    return reduced(oprack.log(1 + F.exp(-label.astype(input.dtype) * input)), reduction, "soft_margin_loss")


def multi_label_soft_margin_loss(
    input: Tensor, label: Tensor, weight: Any = None, reduction: str = "mean", name: Any = None
) -> Tensor:
    """The mean over classes of the cross entropy of each."""
    loss = -(label * NF.log_sigmoid(input) + (1 - label) * NF.log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.mean(-1), reduction, "multi_label_soft_margin_loss")


def multi_margin_loss(
    input: Tensor,
    label: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
    name: Any = None,
) -> Tensor:
    """By how much other classes come closer than a margin to the right one."""
    label = label.reshape([-1, 1]).astype("int64")
    right = F.index_sample(input, label)
    gap = oprack.clip(margin - right + input, 0.0)
    if weight is not None:
        gap = gap * F.gather(weight, label.reshape([-1])).reshape([-1, 1])
    loss = (gap**p).mean(1) - (
        margin**p * (1 if weight is None else F.gather(weight, label.reshape([-1])) ** p)
    ) / input.shape[1]
    return reduced(loss, reduction, "multi_margin_loss")


def poisson_nll_loss(
    input: Tensor, label: Tensor, log_input: bool = True, full: bool = False, epsilon: float = 1e-8,
    reduction: str = "mean", name: Any = None,
) -> Tensor:  # fmt: skip
    """The negative log likelihood of counts of a Poisson distribution."""
    loss = F.exp(input) - label * input if log_input else input - label * oprack.log(input + epsilon)
    if full:
        stirling = label * oprack.log(label) - label + 0.5 * oprack.log(label * (2 * math.pi))
        loss = loss + oprack.where(label > 1, stirling, oprack.zeros_like(stirling))
    return reduced(loss, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    label: Tensor,
    variance: Tensor,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: Any = None,
) -> Tensor:
    """The negative log likelihood of a normal distribution."""
    if list(variance.shape) != list(input.shape) and list(variance.shape) == list(input.shape)[:-1]:
        variance = variance.unsqueeze(-1)
    variance = variance + (oprack.clip(variance, epsilon) - variance).detach()
    loss = 0.5 * (oprack.log(variance) + (input - label) * (input - label) / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction, "gaussian_nll_loss")


def pairwise_distance(
    x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: Any = None
) -> Tensor:
    """The p-norm of the difference of rows."""
    gap = x - y
    gap = gap + epsilon if epsilon else gap
    return p_norm(gap, p, -1, keepdim)


def triplet_margin_with_distance_loss(
    input: Tensor, positive: Tensor, negative: Tensor, distance_function: Any = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean", name: Any = None,
) -> Tensor:  # fmt: skip
    """By how much a negative example comes closer than a margin more than a positive one."""
    far = distance_function or (lambda a, b: pairwise_distance(a, b, 2))
    close, away = far(input, positive), far(input, negative)
    if swap:
        away = oprack.minimum(away, far(positive, negative))
    return reduced(oprack.clip(close - away + margin, 0.0), reduction, "triplet_margin_with_distance_loss")


def dice_loss(input: Tensor, label: Tensor, epsilon: float = 1e-5, name: Any = None) -> Tensor:
    """One minus twice the overlap over the sum of two sets."""
    label = oprack.one_hot(label.squeeze([-1]), input.shape[-1])
    axes = list(range(1, input.ndim))
    inside = (input * label).sum(axes)
    total = input.sum(axes) + label.sum(axes)
    return (1 - inside * 2 / (total + epsilon)).mean()


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """The cross entropy of the similarities of anchors and positive examples."""
    n = labels.shape[0]
    same = F.equal(labels.reshape([n, 1]).broadcast_to([n, n]), labels.reshape([1, n]).broadcast_to([n, n])).astype(
        "float32"
    )
    same = same / same.sum(1, keepdim=True)
    penalty = ((anchor * anchor).sum(1).mean() + (positive * positive).sum(1).mean()) * 0.25 * l2_reg
    scores = F.matmul_v2(anchor, positive, trans_y=True)
    loss = oprack.softmax_with_cross_entropy(scores, same, soft_label=True)
    return penalty + ((same * loss).sum(0)).mean()


def hinge_embedding_loss(
    input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean", name: Any = None
) -> Tensor:
    """The distance of what belongs together, and how far the rest is within a margin."""
    zero = oprack.zeros_like(input)
    loss = oprack.where(label == 1.0, input, zero) + oprack.where(label == -1.0, oprack.clip(margin - input, 0.0), zero)
    return reduced(loss, reduction, "hinge_embedding_loss")


def sigmoid_focal_loss(
    logit: Tensor,
    label: Tensor,
    normalizer: Any = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: Any = None,
) -> Tensor:
    """The cross entropy of two classes, with less weight on examples that are right already."""
    loss = F.sigmoid_cross_entropy_with_logits(logit, label)
    p = F.sigmoid(logit)
    sure = p * label + (1 - p) * (1 - label)
    weight = alpha * label + (1 - alpha) * (1 - label)
    loss = weight * ((1 - sure) ** gamma) * loss
    loss = loss if normalizer is None else loss / normalizer
    return reduced(loss, reduction, "sigmoid_focal_loss")


def hsigmoid_loss(
    input: Tensor, label: Tensor, num_classes: int, weight: Tensor, bias: Any = None, path_table: Any = None,
    path_code: Any = None, is_sparse: bool = False, name: Any = None,
) -> Tensor:  # fmt: skip
    """The loss of hierarchical sigmoid, over the path of each class in a tree."""
    found = F.hierarchical_sigmoid(
        input, weight, label, path_table, path_code, bias, num_classes=num_classes, is_sparse=is_sparse
    )
    return found[0] if isinstance(found, tuple) else found


def margin_cross_entropy(
    logits: Tensor, label: Tensor, margin1: float = 1.0, margin2: float = 0.5, margin3: float = 0.0,
    scale: float = 64.0,
    group: Any = None, return_softmax: bool = False, reduction: Any = "mean",
) -> Any:  # fmt: skip
    """The cross entropy of cosines whose right class has a margin in its angle."""
    label = label.reshape([-1])
    hot = oprack.one_hot(label, logits.shape[-1]).astype(logits.dtype)
    angle = F.acos(oprack.clip(logits, -1.0, 1.0))
    harder = F.cos(angle * margin1 + margin2) - margin3
    scores = (harder * hot + logits * (1 - hot)) * scale
    logs = F.log_softmax(scores, axis=-1)
    loss = -(logs * hot).sum(-1, keepdim=True)
    loss = loss if reduction is None else reduced(loss, reduction, "margin_cross_entropy")
    return (loss, F.exp(logs)) if return_softmax else loss


def rnnt_loss(
    input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: int = 0,
    fastemit_lambda: float = 0.001, reduction: str = "mean", name: Any = None,
) -> Tensor:  # fmt: skip
    """The negative log likelihood of a transducer."""
    found = F.warprnnt(
        input,
        input_lengths=input_lengths,
        label=label,
        label_lengths=label_lengths,
        blank=blank,
        fastemit_lambda=fastemit_lambda,
    )
    loss = found[0] if isinstance(found, tuple) else found
    return reduced(loss, reduction, "rnnt_loss")


def log_loss(input: Tensor, label: Tensor, epsilon: float = 1e-4, name: Any = None) -> Tensor:
    """The negative log likelihood of two classes."""
    return F.log_loss(input, label, epsilon=epsilon)


def kl_div(input: Tensor, label: Tensor, reduction: str = "mean", name: Any = None, log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence; input holds logarithms."""
    if not log_target:
        return F.kldiv_loss(input, label, reduction=reduction)
    loss = F.exp(label) * (label - input)
    return loss.sum() / input.shape[0] if reduction == "batchmean" else reduced(loss, reduction, "kl_div")


def class_center_sample(label: Tensor, num_classes: int, num_samples: int, group: Any = None) -> Any:
    """The classes of a batch and some others, and the labels among these."""
    return F.class_center_sample(label, num_classes=num_classes, num_samples=num_samples)


def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """The squared difference of each element."""
    gap = input - label
    return gap * gap


def l1_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: Any = None) -> Tensor:
    """The absolute difference."""
    return reduced(F.abs(input - label), reduction, "l1_loss")


def margin_ranking_loss(
    input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean", name: Any = None
) -> Tensor:
    """By how much a pair is in the wrong order."""
    return reduced(oprack.clip((other - input) * label + margin, 0.0), reduction, "margin_ranking_loss")


def softmax_with_cross_entropy(
    logits: Tensor, label: Tensor, soft_label: bool = False, ignore_index: int = -100, numeric_stable_mode: bool = True,
    return_softmax: bool = False, axis: int = -1,
) -> Any:  # fmt: skip
    """The cross entropy of logits, one number for each example."""
    if not soft_label and label.ndim == logits.ndim - 1:
        label = label.unsqueeze(axis)
    softmax, loss = F.softmax_with_cross_entropy(
        logits,
        label,
        soft_label=soft_label,
        ignore_index=ignore_index,
        numeric_stable_mode=numeric_stable_mode,
        axis=axis,
    )
    return (loss, softmax) if return_softmax else loss


def mse_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: Any = None) -> Tensor:
    """The squared difference."""
    return reduced(square_error_cost(input, label), reduction, "mse_loss")


def nll_loss(
    input: Tensor,
    label: Tensor,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: Any = None,
) -> Tensor:
    """The negative log likelihood; input holds logarithms."""
    shape = list(label.shape)
    if input.ndim not in (2, 4):
        input = input.reshape([*input.shape[:2], 1, -1])
        label = label.reshape([shape[0], 1, -1])
    found = F.nll_loss(input, label, weight, ignore_index=ignore_index, reduction=reduction)
    loss = found[0] if isinstance(found, tuple) else found
    return loss.reshape(shape) if reduction == "none" else loss


def binary_cross_entropy_with_logits(
    logit: Tensor, label: Tensor, weight: Any = None, reduction: str = "mean", pos_weight: Any = None, name: Any = None
) -> Tensor:
    """The loss of logits; as in Paddle 2, pos_weight multiplies the logarithm alone."""
    if pos_weight is None:
        loss = F.sigmoid_cross_entropy_with_logits(logit, label)
    else:
        factor = label * (pos_weight - 1.0) + 1.0
        loss = F.relu(logit) - logit * label + factor * F.log1p(F.exp(-F.abs(logit)))
    return reduced(loss if weight is None else loss * weight, reduction, "binary_cross_entropy_with_logits")


def cross_entropy(
    input: Tensor, label: Tensor, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    soft_label: bool = False, axis: int = -1, use_softmax: bool = True, label_smoothing: float = 0.0, name: Any = None,
) -> Tensor:  # fmt: skip
    """The loss of logits; labels that are ignored, -100 among them, do not count in the mean."""
    settings = (weight, ignore_index, reduction, soft_label, axis, use_softmax, label_smoothing)
    found = NF.cross_entropy(input, label, *settings)
    if soft_label or label_smoothing or reduction != "mean" or weight is not None or ignore_index != -100:
        return found
    if isinstance(label, oprack.Tensor) and not (np.asarray(label) == ignore_index).any():
        return found
    # The mean counts all: as many times more as there are labels for each that is not ignored.
    kept = oprack.mean((label != ignore_index).astype(found.dtype))
    return found / (kept + (kept == 0.0).astype(found.dtype))
