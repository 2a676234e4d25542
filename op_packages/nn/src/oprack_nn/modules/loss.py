"""Losses as modules. reduction: "mean", "sum", or "none" for one loss per example or element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.nn import Module

from oprack_nn.functional import loss as L

if TYPE_CHECKING:
    from oprack import Tensor


class _Loss(Module):
    """reduction: "mean", "sum", or "none" for one loss per example."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = L.check_reduction(type(self).__name__, reduction)

    def reduced(self, loss: Tensor) -> Tensor:
        return L.reduced(loss, self.reduction)


class CrossEntropyLoss(_Loss):
    """Computes cross entropy of logits [..., classes] and labels; see oprack.nn.functional.cross_entropy.

    Labels are class numbers [...] or [..., 1], or, with soft_label, probabilities of the shape of the logits.

    Args:
        weight: A factor per class, [classes]; the mean is then the weighted one. None: 1.
        ignore_index: A class number whose examples count for nothing; unless it is the default -100, they don't count
            in the mean either.
        reduction: "mean", "sum", or "none" for the loss of each example or element.
        soft_label: Whether labels are probabilities.
        axis: The dim of the classes.
        use_softmax: Whether inputs are logits; False: they are probabilities.
        label_smoothing: The part of the probability that all classes share evenly, from 0 to 1.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = weight
        self.soft_label, self.ignore_index = soft_label, ignore_index
        self.more: dict[str, Any] = {"axis": axis, "use_softmax": use_softmax, "label_smoothing": label_smoothing}

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        settings = self.weight, self.ignore_index, self.reduction, self.soft_label
        return L.cross_entropy(input, label, *settings, **self.more)


class MSELoss(_Loss):
    """Computes the squared error, (input - label)^2; warns when their shapes differ.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast("MSELoss", input, label, depth=4)
        return self.reduced(L.squared_error(input, label))


class L1Loss(_Loss):
    """Computes the absolute error, |input - label|; warns when their shapes differ.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast("L1Loss", input, label, depth=4)
        return self.reduced(L.absolute_error(input, label))


class SmoothL1Loss(_Loss):
    r"""Computes the Huber loss: squared for small errors, linear for large ones.

    $$\frac{1}{2} d^2$$ of $$d = |input - label|$$ where it is at most delta, else $$delta (d - delta / 2)$$.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each example or element.
        delta: The error at which the loss becomes linear.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast(type(self).__name__, input, label, depth=4)
        return self.reduced(L.huber_error(input, label, self.delta))


class HuberLoss(SmoothL1Loss):
    """Computes the Huber loss: SmoothL1Loss under PyTorch's name.

    Args:
        reduction: "mean", "sum", or "none" for the loss of each example or element.
        delta: The error at which the loss becomes linear.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """


class NLLLoss(_Loss):
    r"""Computes the negative log-likelihood, $$-w_y \, input_y$$, of log-probabilities [N, C] or [N, C, H, W].

    Labels are class numbers [N] or [N, H, W]; the mean is divided by the sum of the weights.

    Args:
        weight: A factor per class, [C]; None: 1.
        ignore_index: A class number that is left out of the loss and of the mean.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.nll_loss(input, label, self.weight, self.ignore_index, self.reduction)


class BCELoss(_Loss):
    r"""Computes binary cross entropy of probabilities, $$-w (y \log x + (1 - y) \log(1 - x))$$.

    Args:
        weight: Factors of the losses, broadcast to them; None: 1.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.binary_cross_entropy(input, label, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    r"""Computes binary cross entropy of the sigmoid of logits, without overflow.

    $$-w (p \, y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)))$$

    Args:
        weight: Factors of the losses, broadcast to them; None: 1.
        reduction: "mean", "sum", or "none" for the loss of each example or element.
        pos_weight: The factor p of positive examples, broadcast to the logits; None: 1.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        return L.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(Module):
    r"""Computes the Kullback-Leibler divergence, $$y (\log y - input)$$, of log-probabilities from probabilities y.

    Args:
        reduction: "mean", "sum", "batchmean" (the sum divided by the size of dim 0), or "none".
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.kl_div(input, label, self.reduction)


class MarginRankingLoss(_Loss):
    r"""Penalizes pairs that are in the wrong order, or nearer than a margin: $$\max(0, -y (input - other) + margin)$$.

    The label y is 1 where input should be the larger, else -1.

    Args:
        margin: The difference from which on a pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        return L.margin_ranking_loss(input, other, label, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    r"""Penalizes distances of similar pairs, and distances below a margin of others.

    input where the label is 1, $$\max(0, margin - input)$$ where it is -1.

    Args:
        margin: The distance from which on a dissimilar pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.hinge_embedding_loss(input, label, self.margin, self.reduction)


class CosineEmbeddingLoss(_Loss):
    r"""Penalizes the angle of similar pairs of vectors, and similarity of others.

    $$1 - \cos$$ where the label is 1, $$\max(0, \cos - margin)$$ where it is -1, of vectors in the last dim.

    Args:
        margin: The cosine up to which a dissimilar pair costs nothing.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        return L.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    r"""Penalizes triplets whose anchor is not nearer to its positive than to its negative by a margin.

    $$\max(0, \|a - p\| - \|a - n\| + margin)$$ of vectors in the last dim.

    Args:
        margin: The difference of distances from which on a triplet costs nothing.
        p: Order of the norm.
        epsilon: Added to the differences, so that the norm has a gradient at 0.
        swap: Whether the distance of negative from positive counts where it is less than that from the anchor.
        reduction: "mean", "sum", or "none" for the loss of each example or element.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        epsilon: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.settings = margin, p, epsilon, swap

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return L.triplet_margin_loss(input, positive, negative, *self.settings, self.reduction)
