"""Losses as modules."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack import Tensor


class _Loss(Module):
    """reduction: "mean", "sum", or "none" for one loss per example."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise InvalidArgumentError(f"{type(self).__name__}: reduction is {reduction!r}; expected mean, sum or none")
        self.reduction = reduction

    def reduced(self, loss: Tensor) -> Tensor:
        if self.reduction == "none":
            return loss
        return F.reduce_mean(loss, reduce_all=True) if self.reduction == "mean" else F.reduce_sum(loss, reduce_all=True)


class CrossEntropyLoss(_Loss):
    """Of logits [..., classes] and labels, class numbers [..., 1] or probabilities: op softmax_with_cross_entropy."""

    def __init__(self, reduction: str = "mean", soft_label: bool = False, ignore_index: int = -100) -> None:
        super().__init__(reduction)
        self.soft_label, self.ignore_index = soft_label, ignore_index

    def forward(self, logits: Tensor, label: Tensor) -> Tensor:
        found = F.softmax_with_cross_entropy(logits, label, soft_label=self.soft_label, ignore_index=self.ignore_index)
        return self.reduced(found.loss)


def _warn_of_broadcast(module: _Loss, input: Tensor, label: Tensor) -> None:
    """A label [n] beside a result [n, 1] would be broadcast to [n, n], which is seldom meant."""
    x, y = input.shape, label.shape
    # a size of -1, in a program, is not known yet
    if x != y and (len(x) != len(y) or any(m != n and min(m, n) >= 0 for m, n in zip(x, y, strict=True))):
        warnings.warn(
            f"{type(module).__name__}: input has shape {list(input.shape)} and label {list(label.shape)}, so the "
            "loss is that of all pairs after broadcasting; give both one shape: label.reshape(input.shape)",
            stacklevel=4,
        )


class MSELoss(_Loss):
    """(input - label)^2. Warns when their shapes differ."""

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        _warn_of_broadcast(self, input, label)
        difference = F.elementwise_sub(input, label)
        return self.reduced(F.elementwise_mul(difference, difference))


class L1Loss(_Loss):
    """|input - label|. Warns when their shapes differ."""

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        _warn_of_broadcast(self, input, label)
        return self.reduced(F.abs(F.elementwise_sub(input, label)))
