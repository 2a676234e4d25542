"""Losses of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.nn import Module
from oprack_nn.functional.loss import check_reduction

from oprack_sequence.functional.loss import ctc_loss

if TYPE_CHECKING:
    from oprack import Tensor


class CTCLoss(Module):
    """Computes the loss of connectionist temporal classification; see oprack.nn.functional.ctc_loss.

    A call takes unnormalized scores [time, batch, classes], labels [batch, length] and the lengths of both.

    Args:
        blank: The class number of the blank.
        reduction: "mean", after each loss was divided by the length of its labels; "sum"; or "none" for the loss of
            each example.

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, check_reduction("CTCLoss", reduction)

    def forward(
        self,
        log_probs: Tensor,
        labels: Tensor,
        input_lengths: Tensor,
        label_lengths: Tensor,
        norm_by_times: bool = False,
    ) -> Tensor:
        lengths = input_lengths, label_lengths
        return ctc_loss(log_probs, labels, *lengths, self.blank, self.reduction, norm_by_times)
