"""Kernels, imported on the first use of their op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS


# accuracy -------------------------------------------------------------------------------------------------------------
@kernel("accuracy", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def accuracy(Out: Array, Indices: Array, Label: Array, *, xp: ArrayModule) -> tuple[Array, ...]:
    total = Indices.shape[0]
    correct = (Indices == Label.reshape(total, 1)).any(axis=1).sum()
    share = (correct / max(total, 1)).astype("float32")
    return share, correct.astype("int32"), xp.full((), total, dtype="int32")


# auc ------------------------------------------------------------------------------------------------------------------
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


# chunk_eval -----------------------------------------------------------------------------------------------------------
# tags of each scheme: how many, and which mean begin, inside, end, single (-1: none)
_SCHEMES = {"IOB": (2, 0, 1, -1, -1), "IOE": (2, -1, 0, 1, -1), "IOBES": (4, 0, 1, 2, 3), "plain": (1, -1, -1, -1, -1)}


def _chunks(tags: Array, first: Array, types: int, scheme: str) -> Array:
    """(begin, end, type) [3, chunks] of all chunks. tags: [N]. first: mask of the positions that start a sequence."""
    count, begin, inside, end, single = _SCHEMES[scheme]
    tag, kind = tags % count, tags // count
    outside = kind == types
    last_tag = np.concatenate([[-1], tag[:-1]])
    last_kind = np.where(first, types, np.concatenate([[types], kind[:-1]]))
    last_tag = np.where(first, -1, last_tag)
    was_outside, other = last_kind == types, kind != last_kind

    closed = (last_tag == end) | (last_tag == single)
    opens_inside = (tag == begin) | (tag == single)
    starts = ~outside & (was_outside | other | opens_inside | (((tag == inside) | (tag == end)) & closed))
    open_before = (last_tag == begin) | (last_tag == inside)
    ends = ~was_outside & (outside | other | (open_before & opens_inside) | closed)
    at = np.flatnonzero(starts)
    stops = np.append(np.flatnonzero(ends | first), len(tags))
    until = stops[np.searchsorted(stops, at, side="right")] - 1
    return np.stack([at, until, kind[at]])


def _flat(tags: Array, lengths: Array | None, lod: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Tags of all sequences one after another, and which of them start one."""
    if lengths is not None:
        lengths = np.asarray(lengths).reshape(-1).astype(np.int64)
        rows = tags.reshape(len(lengths), -1)
        inside = np.arange(rows.shape[1]) < lengths[:, None]
        starts = np.zeros(rows.shape, bool)
        starts[:, :1] = True
        return rows[inside].astype(np.int64), starts[inside]
    if not lod:
        raise InvalidArgumentError(
            "op chunk_eval: neither LoD nor SeqLength tells the sequences apart; feed Inference and Label with LoD, or "
            "give SeqLength"
        )
    flat = tags.reshape(-1).astype(np.int64)
    begins = np.zeros(len(flat) + 1, bool)  # an empty last sequence would start behind the end
    begins[lod[-1][:-1]] = True
    return flat, begins[:-1]


@kernel("chunk_eval", dtypes={"float32"})
def chunk_eval(
    Inference: Array,
    Label: Array,
    SeqLength: Array | None = None,
    *,
    num_chunk_types: int,
    chunk_scheme: str,
    excluded_chunk_types: list[int],
    ctx: KernelContext,
) -> tuple[Array, ...]:
    found = []
    for slot, tags in (("Inference", Inference), ("Label", Label)):
        flat, first = _flat(tags, SeqLength, ctx.lod(slot))
        chunks = _chunks(flat, first, num_chunk_types, chunk_scheme)
        found.append(chunks[:, ~np.isin(chunks[2], excluded_chunk_types)])
    infer, label = found
    # a position begins at most one chunk, so equal begins are matched first
    _, i, j = np.intersect1d(infer[0], label[0], assume_unique=True, return_indices=True)
    right = int((infer[:, i] == label[:, j]).all(axis=0).sum())
    counts = infer.shape[1], label.shape[1], right
    precision = right / counts[0] if counts[0] else 0.0
    recall = right / counts[1] if counts[1] else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    rates = (np.array([v], np.float32) for v in (precision, recall, f1))
    return (*rates, *(np.array([n], np.int64) for n in counts))


# mean_iou -------------------------------------------------------------------------------------------------------------
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


# positive_negative_pair -----------------------------------------------------------------------------------------------
@kernel("positive_negative_pair", dtypes=FLOATS)
def positive_negative_pair(
    Score: Array,
    Label: Array,
    QueryID: Array,
    AccumulatePositivePair: Array | None = None,
    AccumulateNegativePair: Array | None = None,
    AccumulateNeutralPair: Array | None = None,
    Weight: Array | None = None,
    *,
    column: int,
) -> tuple[Array, ...]:
    """All pairs of a query at once: how many items it has bounds the memory, not how many there are in all."""
    order = np.argsort(QueryID.reshape(-1), kind="stable")
    score, label = Score[order, column], Label.reshape(-1)[order]
    weight = np.ones_like(score) if Weight is None else Weight.reshape(-1)[order]
    _, starts = np.unique(QueryID.reshape(-1)[order], return_index=True)
    totals = np.zeros(3)
    for first, end in zip(starts, [*starts[1:], len(order)], strict=True):
        s, t, w = score[first:end], label[first:end], weight[first:end]
        i, j = np.triu_indices(end - first, 1)
        counts = (w[i] + w[j]) * 0.5 * (t[i] != t[j])
        right = (s[i] - s[j]) * (t[i] - t[j]) > 0
        totals += counts[right].sum(), counts[~right].sum(), counts[s[i] == s[j]].sum()
    given = (AccumulatePositivePair, AccumulateNegativePair, AccumulateNeutralPair)
    before = np.array([0 if a is None else a.reshape(-1)[0] for a in given])
    return tuple((totals + before).astype(Score.dtype).reshape(3, 1))


# precision_recall -----------------------------------------------------------------------------------------------------
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
