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
    """Connectionist temporal classification of logits [time, batch, classes] and labels [batch, length], int32.

    The mean is that of the losses by the lengths of their labels.
    """
    check_reduction("ctc_loss", reduction)
    lengths = [v.astype("int64") for v in (input_lengths, label_lengths)]
    found = F.warpctc(log_probs, labels.astype("int32"), *lengths, blank=int(blank), norm_by_times=norm_by_times)
    loss = (found.loss if isinstance(found, tuple) else found).reshape([-1])
    if reduction == "mean":
        loss = loss / lengths[1].astype(loss.dtype).clip(min=1.0)
    return reduced(loss, reduction)


__all__ = ["ctc_loss"]
