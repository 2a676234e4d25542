"""Losses as modules."""

from __future__ import annotations

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.nn import Module


class _Loss(Module):
    """reduction: "mean", "sum", or "none" for one loss per example."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidArgumentError(f"{type(self).__name__}: reduction is {reduction!r}; expected mean, sum or none")
        self.reduction = reduction

    def reduced(self, loss):
        if self.reduction == "none":
            return loss
        return F.reduce_mean(loss, reduce_all=True) if self.reduction == "mean" else F.reduce_sum(loss, reduce_all=True)


class CrossEntropyLoss(_Loss):
    """Of logits [..., classes] and labels, class numbers [..., 1] or probabilities: op softmax_with_cross_entropy."""

    def __init__(self, reduction: str = "mean", soft_label: bool = False, ignore_index: int = -100) -> None:
        super().__init__(reduction)
        self.soft_label, self.ignore_index = soft_label, ignore_index

    def forward(self, logits, label):
        found = F.softmax_with_cross_entropy(logits, label, soft_label=self.soft_label, ignore_index=self.ignore_index)
        return self.reduced(found.Loss)


class MSELoss(_Loss):
    """(input - label)^2."""

    def forward(self, input, label):
        difference = F.elementwise_sub(input, label)
        return self.reduced(F.elementwise_mul(difference, difference))


class L1Loss(_Loss):
    """|input - label|."""

    def forward(self, input, label):
        return self.reduced(F.abs(F.elementwise_sub(input, label)))
