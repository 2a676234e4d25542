"""Losses. reduction: "mean", "sum", or "none" for one loss per example or element."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.interpreter.symbol import declared_shape

from oprack_nn.functional.common import cosine_similarity, lod_of

if TYPE_CHECKING:
    from oprack import Tensor

_REDUCTIONS = ("mean", "sum", "none")


def check_reduction(call: str, reduction: str) -> str:
    """The reduction, if it is one."""
    if reduction not in _REDUCTIONS:
        raise InvalidArgumentError(f"{call}: reduction is {reduction!r}; expected mean, sum or none")
    return reduction


def reduced(loss: Tensor, reduction: str, call: str = "loss") -> Tensor:
    """The mean or the sum of losses, or the losses themselves."""
    check_reduction(call, reduction)
    if reduction == "none":
        return loss
    return F.reduce_mean(loss, reduce_all=True) if reduction == "mean" else F.reduce_sum(loss, reduce_all=True)


def cross_entropy(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""$$-\sum_k y_k \log softmax(input)_k$$ of logits [..., classes] and labels: class numbers [...] or [..., 1], or,
    with soft_label, probabilities like input.

    Args:
        input: Logits; probabilities with use_softmax=False.
        label: What is right.
        weight: A weight for each class; the mean is then the weighted one.
        ignore_index: A class number whose examples count for nothing; unless it is the default -100, which Paddle keeps
            for "none", they don't count in the mean either.
        reduction: "mean", "sum" or "none".
        soft_label: Whether labels are probabilities.
        axis: The dim of the classes.
        use_softmax: Whether input are logits.
        label_smoothing: A part of the probability that all classes share evenly.

    Returns:
        The loss.

    Raises:
        InvalidArgumentError: The reduction is none of the three.
    """
    check_reduction("cross_entropy", reduction)
    attrs = {"ignore_index": ignore_index, "axis": axis, "use_softmax": use_softmax}
    hard = label
    if label_smoothing and not soft_label:
        plain = label.squeeze(axis) if label.ndim == input.ndim else label
        label = F.one_hot_v2(plain, depth=input.shape[axis], allow_out_of_range=True)
        label = label if axis in (-1, input.ndim - 1) else label.moveaxis(-1, axis)
    smooth = soft_label or bool(label_smoothing)
    if label_smoothing:
        label = label * (1.0 - label_smoothing) + label_smoothing / input.shape[axis]
    loss = F.softmax_with_cross_entropy(input, label, soft_label=smooth, **attrs).loss
    kept = None
    if not soft_label and ignore_index != -100:
        kept = (hard != ignore_index).astype(loss.dtype)
    if weight is not None:
        each = _weights(weight, label if soft_label else hard, soft_label, axis, ignore_index)
        kept = each if kept is None else each * kept.reshape(list(each.shape))
    if kept is None:
        return reduced(loss, reduction)
    kept = kept if declared_shape(kept) == declared_shape(loss) else kept.reshape(list(loss.shape))
    loss = loss * kept
    if reduction == "mean":
        return loss.sum() / kept.sum()
    return reduced(loss, reduction)


def _weights(weight: Tensor, label: Tensor, soft: bool, axis: int, ignore_index: int) -> Tensor:
    """The weight of each example: that of its class, or the mean by its probabilities."""
    if soft:
        shape = [1] * label.ndim
        shape[axis] = -1
        return (label * weight.reshape(shape)).sum(axis, keepdim=True)
    safe = F.where(label == ignore_index, F.fill_any_like(label, value=0.0), label)  # it may be no class at all
    return F.gather(weight, safe.reshape([-1])).reshape(list(label.shape))


def softmax_with_cross_entropy(
    logits: Tensor, label: Tensor, soft_label: bool = False, ignore_index: int = -100, axis: int = -1
) -> Tensor:
    """Computes cross entropy of softmax for each example, without a reduction.

    Args:
        logits: Unnormalized scores of the classes, floats.
        label: Class numbers, int64, of the shape of logits with 1 along axis; with soft_label, probabilities of the
            shape of logits.
        soft_label: Whether labels are probabilities.
        ignore_index: A class number whose examples have loss 0; it has no meaning with soft_label.
        axis: The dim of the classes.

    Returns:
        The losses, of the shape of logits with 1 along axis.
    """
    return F.softmax_with_cross_entropy(logits, label, soft_label=soft_label, ignore_index=ignore_index, axis=axis).loss


def nll_loss(
    input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    r"""Computes the negative log-likelihood of class numbers.

    $$-w_y \, input_y$$; the mean is divided by the sum of the weights.

    Args:
        input: Log-probabilities [N, C] or [N, C, H, W].
        label: Class numbers, int64, [N] or [N, H, W].
        weight: A factor per class, [C]; None: 1.
        ignore_index: A class number that is left out of the loss and of the mean.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or of the shape of label with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    check_reduction("nll_loss", reduction)
    found = F.nll_loss(input, label, weight, ignore_index=ignore_index, reduction=reduction)
    several = isinstance(found, tuple)
    loss = found.out if several else found
    return lod_of(input, loss) if reduction == "none" else loss


def binary_cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    r"""Computes binary cross entropy of probabilities.

    $$-w (y \log x + (1 - y) \log(1 - x))$$

    Args:
        input: Probabilities between 0 and 1.
        label: Targets from 0 to 1, of the shape of input.
        weight: Factors of the losses, broadcast to them; None: 1.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or of the shape of input with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    loss = F.bce_loss(input, label)
    return reduced(loss if weight is None else loss * weight, reduction, "binary_cross_entropy")


def binary_cross_entropy_with_logits(
    logit: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    r"""Computes binary cross entropy of the sigmoid of logits, without overflow.

    $$-w (p \, y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)))$$

    Args:
        logit: Unnormalized scores, floats.
        label: Targets from 0 to 1, of the shape of logit.
        weight: Factors of the losses, broadcast to them; None: 1.
        reduction: "mean", "sum", or "none" for the loss of each element.
        pos_weight: The factor p of positive examples, broadcast to logit; None: 1.

    Returns:
        The loss: one number, or of the shape of logit with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    check_reduction("binary_cross_entropy_with_logits", reduction)
    loss = F.sigmoid_cross_entropy_with_logits(logit, label)
    if pos_weight is not None:
        loss = loss + (pos_weight - 1.0) * label * F.softplus(-logit)
    return reduced(loss if weight is None else loss * weight, reduction)


def mse_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """Computes the squared error, $$(input - label)^2$$.

    Args:
        input: Predictions, floats.
        label: Targets, of the shape of input; other shapes are broadcast, with a warning.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or the errors with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    warn_of_broadcast("mse_loss", input, label)
    return reduced(squared_error(input, label), reduction, "mse_loss")


def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """Computes the squared error of each element, $$(input - label)^2$$.

    Args:
        input: Predictions, floats.
        label: Targets, of a shape that broadcasts with input.

    Returns:
        The errors, of the broadcast shape.
    """
    return squared_error(input, label)


def l1_loss(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    """Computes the absolute error, $$|input - label|$$.

    Args:
        input: Predictions, floats.
        label: Targets, of the shape of input; other shapes are broadcast, with a warning.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or the errors with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    warn_of_broadcast("l1_loss", input, label)
    return reduced(absolute_error(input, label), reduction, "l1_loss")


def smooth_l1_loss(input: Tensor, label: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    r"""Computes the Huber loss: squared for small errors, linear for large ones.

    $$\frac{1}{2} d^2$$ of $$d = |input - label|$$ where it is at most delta, else $$delta (d - delta / 2)$$.

    Args:
        input: Predictions, floats.
        label: Targets, of the shape of input.
        reduction: "mean", "sum", or "none" for the loss of each element.
        delta: The error at which the loss becomes linear.

    Returns:
        The loss: one number, or of the shape of input with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    warn_of_broadcast("smooth_l1_loss", input, label)
    return reduced(huber_error(input, label, delta), reduction, "smooth_l1_loss")


def kl_div(input: Tensor, label: Tensor, reduction: str = "mean") -> Tensor:
    r"""Computes the Kullback-Leibler divergence of predictions from targets.

    $$y (\log y - input)$$, 0 where y is 0.

    Args:
        input: Log-probabilities.
        label: Probabilities y, of the shape of input.
        reduction: "mean", "sum", "batchmean" (the sum divided by the size of dim 0), or "none".

    Returns:
        The divergence: one number, or of the shape of input with reduction "none".
    """
    found = F.kldiv_loss(input, label, reduction=reduction)
    return lod_of(input, found) if reduction == "none" else found


def margin_ranking_loss(
    input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""Penalizes pairs that are in the wrong order or nearer than a margin.

    $$\max(0, -y (input - other) + margin)$$

    Args:
        input: The first scores, floats.
        other: The second scores, of the shape of input.
        label: 1 where input should be the larger, -1 where other should be, in the dtype of input.
        margin: The difference from which on a pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or of the shape of input with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    return reduced(F.relu((other - input) * label + margin), reduction, "margin_ranking_loss")


def hinge_embedding_loss(input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    r"""Penalizes distances of similar pairs, and distances below a margin of others.

    input where label is 1, $$\max(0, margin - input)$$ where it is -1.

    Args:
        input: Distances, floats.
        label: 1 for similar pairs and -1 for others, of the shape of input.
        margin: The distance from which on a dissimilar pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or of the shape of input with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    return reduced(F.where(label == 1, input, F.relu(margin - input)), reduction, "hinge_embedding_loss")


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""Penalizes the angle of similar pairs of vectors, and similarity of others.

    $$1 - \cos$$ where label is 1, $$\max(0, \cos - margin)$$ where it is -1.

    Args:
        input1: Vectors [..., size].
        input2: Vectors, of the shape of input1.
        label: 1 for similar pairs and -1 for others, [...].
        margin: The cosine up to which a dissimilar pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or of the shape of label with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    cos = cosine_similarity(input1, input2, axis=-1)
    return reduced(F.where(label == 1, 1.0 - cos, F.relu(cos - margin)), reduction, "cosine_embedding_loss")


def triplet_margin_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""Penalizes triplets whose anchor is not nearer to its positive than to its negative by a margin.

    $$\max(0, \|a - p\| - \|a - n\| + margin)$$, norms taken over the last dim.

    Args:
        input: Anchors [..., size].
        positive: Vectors that should be near, of the shape of input.
        negative: Vectors that should be far, of the shape of input.
        margin: The difference of distances from which on a triplet costs nothing.
        p: Order of the norm.
        epsilon: Added to the differences, so that the norm has a gradient at 0.
        swap: Whether the distance of negative from positive counts where it is less than that from the anchor.
        reduction: "mean", "sum", or "none" for the loss of each element.

    Returns:
        The loss: one number, or [...] with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    near, far = (_distance(input, other, p, epsilon) for other in (positive, negative))
    if swap:
        far = F.elementwise_min(far, _distance(positive, negative, p, epsilon))
    return reduced(F.relu(near - far + margin), reduction, "triplet_margin_loss")


def _distance(x: Tensor, y: Tensor, p: float, epsilon: float) -> Tensor:
    difference = x - y + epsilon
    if p == 2.0:
        found = F.sqrt((difference * difference).sum(-1))
    else:
        found = (abs(difference) ** float(p)).sum(-1) ** (1.0 / p)
    return lod_of(difference, found) if difference.ndim > 1 else found


def absolute_error(input: Tensor, label: Tensor) -> Tensor:
    """l1_loss without a reduction and a warning."""
    difference = F.elementwise_sub(input, label)
    return lod_of(difference, F.abs(difference))


def squared_error(input: Tensor, label: Tensor) -> Tensor:
    """mse_loss without a reduction and a warning."""
    difference = F.elementwise_sub(input, label)
    return F.elementwise_mul(difference, difference)


def huber_error(input: Tensor, label: Tensor, delta: float) -> Tensor:
    """smooth_l1_loss without a reduction and a warning."""
    found = F.huber_loss(input, label, delta=float(delta))
    several = isinstance(found, tuple)
    return found.out if several else found


def warn_of_broadcast(call: str, input: Tensor, label: Tensor, depth: int = 3) -> None:
    """A label [n] beside a result [n, 1] would be broadcast to [n, n], which is seldom meant."""
    x, y = declared_shape(input), declared_shape(label)
    # a size of -1, in a program, is not known yet
    if x != y and (len(x) != len(y) or any(m != n and min(m, n) >= 0 for m, n in zip(x, y, strict=True))):
        warnings.warn(
            f"{call}: input has shape {list(x)} and label {list(y)}, so the "
            "loss is that of all pairs after broadcasting; give both one shape: label.reshape(input.shape)",
            stacklevel=depth,
        )


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "triplet_margin_loss",
]
