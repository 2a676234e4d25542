"""Kernel of mean_iou."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel


@kernel("mean_iou", dtypes={"int32", "int64"})
def mean_iou(
    Predictions: Array,
    Labels: Array,
    InWrongs: list[Array],
    InCorrects: list[Array],
    InMeanIou: list[Array],
    *,
    num_classes: int,
) -> tuple[Array, ...]:
    guess, truth = Predictions.reshape(-1), Labels.reshape(-1)
    for slot, values in (("Predictions", guess), ("Labels", truth)):
        if len(values) and not (0 <= values.min() and values.max() < num_classes):
            raise InvalidArgumentError(
                f"op mean_iou: {slot} lies in [{values.min()}, {values.max()}]; expected classes in [0, {num_classes})"
            )
    right = guess == truth
    correct = sum(InCorrects, np.bincount(guess[right], minlength=num_classes))
    wrong = np.bincount(guess[~right], minlength=num_classes) + np.bincount(truth[~right], minlength=num_classes)
    wrong = sum(InWrongs, wrong)
    seen = correct + wrong
    occurs = seen > 0
    mean = (correct[occurs] / seen[occurs]).sum() / max(int(occurs.sum()), 1)
    total = sum((float(m.reshape(-1)[0]) for m in InMeanIou), mean)
    return np.array([total], np.float32), wrong.astype(np.int32), correct.astype(np.int32)
