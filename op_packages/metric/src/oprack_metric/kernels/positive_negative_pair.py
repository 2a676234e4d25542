"""Kernel of positive_negative_pair."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS


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
