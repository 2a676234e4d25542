"""Losses of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F
from oprack_nn.functional.loss import check_reduction, reduced

if TYPE_CHECKING:
    from oprack import Tensor


def ctc_loss(
    log_probs: Tensor,
    labels: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
) -> Tensor:
    """Computes the loss of connectionist temporal classification (Graves et al., 2006).

    Args:
        log_probs: Unnormalized scores [time, batch, classes], despite the name; softmax is part of the loss.
        labels: Class numbers [batch, length], cast to int32.
        input_lengths: The number of time steps of each example, [batch], integers.
        label_lengths: The number of labels of each example, [batch], integers.
        blank: The class number of the blank.
        reduction: "mean", after each loss was divided by the length of its labels; "sum"; or "none" for the loss of
            each example.
        norm_by_times: Whether gradients are divided by the number of time steps.

    Returns:
        The loss: one number, or [batch] with reduction "none".

    Raises:
        InvalidArgumentError: reduction is none of the three.
    """
    check_reduction("ctc_loss", reduction)
    lengths = [v.astype("int64") for v in (input_lengths, label_lengths)]
    found = F.warpctc(log_probs, labels.astype("int32"), *lengths, blank=int(blank), norm_by_times=norm_by_times)
    loss = (found.loss if isinstance(found, tuple) else found).reshape([-1])  # type: ignore[attr-defined]  # a NamedTuple
    if reduction == "mean":
        loss = loss / lengths[1].astype(loss.dtype).clip(min=1.0)
    return reduced(loss, reduction)


__all__ = ["ctc_loss"]
