"""Kernel of auc."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


def _area(positive: Array, negative: Array, xp: ArrayModule) -> Array:
    """Area under the ROC curve of two histograms, by trapezoids from the highest score down; rank 0."""
    tp, fp = xp.cumsum(positive[::-1], dtype=xp.float64), xp.cumsum(negative[::-1], dtype=xp.float64)
    area = (negative[::-1] * (2 * tp - positive[::-1])).sum() / 2
    all_pairs = tp[-1] * fp[-1]
    return xp.where(all_pairs > 0, area / xp.where(all_pairs > 0, all_pairs, 1), 0.0)


def _histogram(place: Array, chosen: Array, bins: int, xp: ArrayModule) -> Array:
    """Elements of each bin, int64 [bins]."""
    counts = xp.zeros(bins, xp.int64)
    xp.add.at(counts, place, chosen.astype(xp.int64))
    return counts


def _moved(stat: Array, histogram: Array, bins: int, steps: int) -> tuple[Array, Array]:
    """State after a batch, and the histogram of all batches that count."""
    stat = stat.reshape(-1).copy()
    if not steps:
        stat += histogram
        return stat.reshape(1, bins), stat
    batches = stat[: steps * bins].reshape(steps, bins)
    slot = int(stat[-1]) % steps
    total = stat[steps * bins : (steps + 1) * bins]
    total += histogram - batches[slot]
    batches[slot] = histogram
    stat[-1] += 1
    return stat, total


@kernel("auc", place=("cpu", "cuda"), dtypes=FLOATS)
def auc(
    Predict: Array,
    Label: Array,
    StatPos: Array,
    StatNeg: Array,
    InsTagWeight: Array | None = None,
    *,
    num_thresholds: int,
    slide_steps: int,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    bins = num_thresholds + 1
    size = bins * (slide_steps + 1) + 1 if slide_steps else bins
    for name, stat in (("StatPos", StatPos), ("StatNeg", StatNeg)):
        if stat.size != size:
            raise InvalidArgumentError(
                f"op auc: {name} has {stat.size} elements; expected {size} for num_thresholds {num_thresholds} and "
                f"slide_steps {slide_steps}"
            )
    score = Predict[:, -1]
    if len(score) and not (score.min() >= 0 and score.max() <= 1):
        raise InvalidArgumentError(
            f"op auc: Predict lies in [{score.min()}, {score.max()}]; expected probabilities in [0, 1], so apply a "
            "sigmoid or softmax first"
        )
    place = (score * Predict.dtype.type(num_thresholds)).astype(xp.int64)
    hit = Label.reshape(-1) > 0
    counts = xp.ones(1, bool) if InsTagWeight is None else InsTagWeight.reshape(-1)[:1] != 0
    histograms = [_histogram(place, m & counts, bins, xp) for m in (hit, ~hit)]
    positive, all_positive = _moved(StatPos, histograms[0], bins, slide_steps)
    negative, all_negative = _moved(StatNeg, histograms[1], bins, slide_steps)
    return _area(all_positive, all_negative, xp), positive, negative
