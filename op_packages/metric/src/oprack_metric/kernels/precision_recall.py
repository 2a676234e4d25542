"""Kernel of precision_recall."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.types import FLOATS


def _ratio(part: Array, rest: Array) -> Array:
    """part / (part + rest); 1 where nothing was counted."""
    total = part + rest
    return np.where(total > 0, part / np.where(total > 0, total, 1), 1.0)


def _f1(precision: float, recall: float) -> Array | float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _metrics(states: Array) -> Array:
    tp, fp, _, fn = states.T
    macro = _ratio(tp, fp).mean(), _ratio(tp, fn).mean()
    micro = float(_ratio(tp.sum(), fp.sum())), float(_ratio(tp.sum(), fn.sum()))
    return np.array([*macro, _f1(*macro), *micro, _f1(*micro)])


@kernel("precision_recall", dtypes=FLOATS)
def precision_recall(
    MaxProbs: Array,
    Indices: Array,
    Labels: Array,
    Weights: Array | None = None,
    StatesInfo: Array | None = None,
    *,
    class_number: int,
) -> tuple[Array, ...]:
    guess, truth = Indices.reshape(-1).astype(np.int64), Labels.reshape(-1).astype(np.int64)
    for slot, values in (("Indices", guess), ("Labels", truth)):
        if len(values) and not (0 <= values.min() and values.max() < class_number):
            raise InvalidArgumentError(
                f"op precision_recall: {slot} lies in [{values.min()}, {values.max()}]; expected classes in "
                f"[0, {class_number})"
            )
    weight = np.ones(len(guess)) if Weights is None else Weights.reshape(-1).astype(np.float64)
    right = guess == truth

    def count(classes: Array, chosen: Array) -> Array:
        return np.bincount(classes[chosen], weights=weight[chosen], minlength=class_number)

    tp, fp, fn = count(guess, right), count(guess, ~right), count(truth, ~right)
    states = np.stack([tp, fp, weight.sum() - tp - fp - fn, fn], axis=1)
    total = states if StatesInfo is None else states + StatesInfo
    return _metrics(states), _metrics(total), total.astype(MaxProbs.dtype)
