"""Metric and the metrics of classes: Accuracy, Precision, Recall, Auc."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oprack.kernel import Array


class Metric(ABC):
    """Base of metrics: `update` with each batch, `accumulate` for the value so far, `reset` before the next epoch.

    Args:
        name: What the metric is called; None: the class's name in lower case.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__.lower()

    def name(self) -> Any:
        """Its name, or a list of names where it has several values."""
        return self._name

    def compute(self, *args: Any) -> Any:
        """What `update` wants of predictions and labels; as they are, where a class does not say otherwise."""
        return args

    @abstractmethod
    def update(self, *args: Any) -> Any:
        """Count a batch."""

    @abstractmethod
    def accumulate(self) -> Any:
        """The value over all batches since the last reset."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all batches."""


class Accuracy(Metric):
    """The share of examples whose label is among the k classes of the highest scores, for each k in topk.

    `m.update(m.compute(scores, label)); m.accumulate()`; or, for k = 1, `m.update(scores, label)`.

    Args:
        topk: One k, or several.
        name: What the metric is called; None: "acc". With several k, `_top<k>` is appended.
    """

    total: Array
    count: int

    def __init__(self, topk: Sequence[int] | int = (1,), name: str | None = None) -> None:
        super().__init__(name or "acc")
        self.topk = [topk] if isinstance(topk, int) else list(topk)
        self.reset()

    def name(self) -> Any:
        return self._name if len(self.topk) == 1 else [f"{self._name}_top{k}" for k in self.topk]

    def compute(self, pred: Any, label: Any) -> Array:
        """Which of the highest scores [..., max k] are right; label: classes [...] or [..., 1], or one-hot rows."""
        scores, right = _array(pred), _array(label)
        if right.ndim == scores.ndim and right.shape[-1] == scores.shape[-1] > 1:
            right = right.argmax(-1)
        elif right.ndim == scores.ndim:
            right = right[..., 0]
        if right.shape != scores.shape[:-1]:
            raise InvalidArgumentError(
                f"Accuracy: pred has shape {list(scores.shape)} and label {list(_array(label).shape)}; expected scores "
                "[..., classes] and class numbers [...] or [..., 1]"
            )
        order = np.argsort(-scores, axis=-1, kind="stable")[..., : max(self.topk)]
        return order == right[..., None]

    def update(self, correct: Any, label: Any = None) -> Any:
        """Count what compute gave, or scores and labels; returns the accuracy of this batch."""
        right = _array(correct if label is None else self.compute(correct, label))
        right = right.reshape(-1, right.shape[-1])
        hits = np.array([right[:, :k].any(-1).sum() for k in self.topk])
        self.total, self.count = self.total + hits, self.count + len(right)
        return _values(hits / max(len(right), 1))

    def accumulate(self) -> Any:
        return _values(self.total / max(self.count, 1))

    def reset(self) -> None:
        self.total, self.count = np.zeros(len(self.topk), np.int64), 0


class _Binary(Metric):
    """Counts true and false positives and false negatives of probabilities at 0.5."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Count probabilities and labels of 0 and 1, of any shape with as many elements."""
        said, right = np.rint(_array(preds).ravel()) == 1, _array(labels).ravel() == 1
        if said.size != right.size:
            raise InvalidArgumentError(
                f"{type(self).__name__}: got {said.size} probabilities and {right.size} labels; expected as many"
            )
        self.true_positives += int((said & right).sum())
        self.false_positives += int((said & ~right).sum())
        self.false_negatives += int((~said & right).sum())

    def reset(self) -> None:
        self.true_positives = self.false_positives = self.false_negatives = 0


class Precision(_Binary):
    """The share of right ones among examples said to be positive; 0 when there are none.

    Args:
        name: What the metric is called; None: the class's name in lower case.
    """

    def accumulate(self) -> float:
        said = self.true_positives + self.false_positives
        return self.true_positives / said if said else 0.0


class Recall(_Binary):
    """The share of positive examples that were said to be so; 0 when there are none.

    Args:
        name: What the metric is called; None: the class's name in lower case.
    """

    def accumulate(self) -> float:
        right = self.true_positives + self.false_negatives
        return self.true_positives / right if right else 0.0


class Auc(Metric):
    """The area under the ROC curve of probabilities, approximated by bins.

    Args:
        curve: "ROC".
        num_thresholds: Number of bins - 1.
        name: What the metric is called; None: the class's name in lower case.

    Raises:
        InvalidArgumentError: curve is not "ROC".
    """

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str | None = None) -> None:
        super().__init__(name)
        if curve != "ROC":
            raise InvalidArgumentError(f'Auc: curve is {curve!r}; expected "ROC"')
        self.bins = num_thresholds + 1
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Count probabilities [n], [n, 1] or of both classes [n, 2], and labels of 0 and 1."""
        scores, right = _array(preds), _array(labels).ravel() == 1
        scores = (scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores).ravel()
        if scores.size != right.size or scores.min(initial=0.0) < 0 or scores.max(initial=1.0) > 1:
            raise InvalidArgumentError(
                f"Auc: got {scores.size} scores and {right.size} labels; expected as many, and scores from 0 to 1"
            )
        places = (scores * (self.bins - 1)).astype(np.int64)
        self.positive += np.bincount(places[right], minlength=self.bins)
        self.negative += np.bincount(places[~right], minlength=self.bins)

    def accumulate(self) -> float:
        positives, negatives = self.positive.sum(), self.negative.sum()
        if not positives or not negatives:
            return 0.0
        below = np.cumsum(self.negative) - self.negative
        return float((self.positive * (below + 0.5 * self.negative)).sum() / (positives * negatives))

    def reset(self) -> None:
        self.positive, self.negative = np.zeros(self.bins, np.int64), np.zeros(self.bins, np.int64)


def _array(value: Any) -> Array:
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def _values(found: Array) -> Any:
    return float(found[0]) if len(found) == 1 else [float(v) for v in found]
