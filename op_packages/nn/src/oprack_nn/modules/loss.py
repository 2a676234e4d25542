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
    """Of logits [..., classes] and labels, class numbers [...] or [..., 1], or probabilities; see
    oprack.nn.functional.cross_entropy."""

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
    """(input - label)^2. Warns when their shapes differ."""

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast("MSELoss", input, label, depth=4)
        return self.reduced(L.squared_error(input, label))


class L1Loss(_Loss):
    """|input - label|. Warns when their shapes differ."""

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast("L1Loss", input, label, depth=4)
        return self.reduced(abs(input - label))


class SmoothL1Loss(_Loss):
    r"""$$\frac{1}{2} d^2$$ of $$d = |input - label|$$ where it is at most delta, else $$delta (d - delta / 2)$$."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        L.warn_of_broadcast(type(self).__name__, input, label, depth=4)
        return self.reduced(L.huber_error(input, label, self.delta))


class HuberLoss(SmoothL1Loss):
    """SmoothL1Loss under PyTorch's name."""


class NLLLoss(_Loss):
    r"""$$-w_y \, input_y$$ of log-probabilities [N, C] or [N, C, H, W]; the mean is the weighted one."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.nll_loss(input, label, self.weight, self.ignore_index, self.reduction)


class BCELoss(_Loss):
    r"""$$-w (y \log x + (1 - y) \log(1 - x))$$ of probabilities."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.binary_cross_entropy(input, label, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    r"""$$-w (p \, y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)))$$ of logits; p: pos_weight."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        return L.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(Module):
    r"""$$y (\log y - input)$$ of log-probabilities; reduction may be "batchmean", too: the sum by rows."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.kl_div(input, label, self.reduction)


class MarginRankingLoss(_Loss):
    r"""$$\max(0, -y (input - other) + margin)$$; y is 1 where input should be the larger, else -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        return L.margin_ranking_loss(input, other, label, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    r"""input where the label is 1, $$\max(0, margin - input)$$ where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return L.hinge_embedding_loss(input, label, self.margin, self.reduction)


class CosineEmbeddingLoss(_Loss):
    r"""$$1 - \cos$$ where the label is 1, $$\max(0, \cos - margin)$$ where it is -1, of vectors in the last dim."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        return L.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    r"""$$\max(0, \|a - p\| - \|a - n\| + margin)$$ of vectors in the last dim; swap: $$\|p - n\|$$ if less."""

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
